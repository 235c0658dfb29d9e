// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The lines of C that act.
"use strict";
// The lines of ref/ that what was touched goes through.
let fading = 0;
function showCode(acting) {
  for (const line of all(".code [data-acts]"))
    line.classList.toggle("acting", !!acting && line.dataset.acts.split(" ").includes(acting));
  clearTimeout(fading);
  fading = setTimeout(() => all(".code .acting").forEach((line) => line.classList.remove("acting")), 4000);
}
