// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Renders formulas: a JSON array of {"tex", "display"} on standard input, of {"html"} or {"error"} on
// standard output, in the same order. What KaTeX merely warns of is an error too.
//   node katex.js DIRECTORY      DIRECTORY holds the package katex
"use strict";
const fs = require("fs");
const path = require("path");
const katex = require(path.resolve(process.argv[2]));

const formulas = JSON.parse(fs.readFileSync(0, "utf8"));
const rendered = formulas.map(({ tex, display }) => {
  try {
    const options = { displayMode: display, throwOnError: true, strict: "error", trust: false };
    return { html: katex.renderToString(tex, options) };
  } catch (error) {
    return { error: error.message };
  }
});
process.stdout.write(JSON.stringify(rendered));
