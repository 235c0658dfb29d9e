// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Renders formulas: a JSON array of {"tex", "display"} on standard input, of {"html"} or {"error"} on
// standard output, in the same order. What KaTeX merely warns of is an error too. A displayed formula of
// several parts, broken by hand or with wide spaces between them, is set twice: as it was written, and by
// rows that a narrow screen may break again (book.css shows one of them).
//   node katex.js DIRECTORY      DIRECTORY holds the package katex
"use strict";
const fs = require("fs");
const path = require("path");
const katex = require(path.resolve(process.argv[2]));

const BROKEN = /^\s*\\begin\{(aligned|gathered)\}([^]*)\\end\{\1\}\s*$/;
const TOKEN = /\\(?:begin|end)\{[a-z*]+\}|\\\\(?:\[[^\]]*\])?|\\[a-z]+|\\?[^]/g;

// A formula breaks after a relation or an operator, as KaTeX has it, and at a quad.
function rendered(tex, displayMode) {
  if (displayMode) tex = tex.replace(/\\q?quad(?![a-z])/g, "$&\\allowbreak ");
  const strict = (code) => (code === "htmlExtension" ? "ignore" : "error"); // \htmlClass colours a term
  const trust = ({ command }) => command === "\\htmlClass";
  const html = katex.renderToString(tex, { displayMode, throwOnError: true, strict, trust });
  return html.replace(/\\(?:htmlClass\{[a-z-]+\}|allowbreak )/g, ""); // of the source that it carries along
}

// The parts of a formula: what \\ or \qquad ends, without the marks of alignment. What stands in braces or
// in an environment of its own is left to its part.
function rowsOf(tex) {
  const broken = BROKEN.exec(tex);
  const rows = [""];
  let depth = 0;
  for (const token of (broken ? broken[2] : tex).match(TOKEN)) {
    if (token === "{" || token.startsWith("\\begin")) depth += 1;
    if (token === "}" || token.startsWith("\\end")) depth -= 1;
    if (depth === 0 && (token.startsWith("\\\\") || token === "\\qquad")) rows.push("");
    else if (depth > 0 || token !== "&") rows[rows.length - 1] += token;
  }
  const kept = rows.filter((row) => row.trim());
  return kept.length > 1 || broken ? kept.flatMap(rowsOf) : kept;
}

function formula({ tex, display }) {
  const rows = display ? rowsOf(tex) : [];
  if (rows.length < 2) return rendered(tex, display);
  const narrow = rows.map((row) => rendered(`{}${row}`, true)).join("");
  return `<span class="columns">${rendered(tex, true)}</span><span class="rows">${narrow}</span>`;
}

const formulas = JSON.parse(fs.readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(formulas.map((asked) => {
  try {
    return { html: formula(asked) };
  } catch (error) {
    return { error: error.message };
  }
})));
