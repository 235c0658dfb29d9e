// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The cards of the laws, and the laws at a glance.
"use strict";
const verdictOf = (law) => (!law.holds ? "broken" : law.residue === 0 ? "to the bit" : "within rounding");

function showLaws(result) {
  for (const [name, law] of Object.entries(result.law)) {
    const card = document.getElementById(`law-${name}`),
      verdict = verdictOf(law);
    const glance = document.querySelector(`.strip [data-law=${name}]`);
    for (const shown of [card, glance]) shown.classList.toggle("broken", !law.holds);
    glance.setAttribute("aria-label", `${glance.textContent}: ${verdict}`);
    const put = (part, text) => {
      card.querySelector(`.${part}`).textContent = text;
    };
    put("verdict", verdict);
    put("left", exact(law.left));
    put("right", exact(law.right));
    put("residue", small(law.residue));
    put("bound", small(law.bound));
  }
}

function brokenLaws(result) {
  return Object.keys(result.law)
    .filter((name) => !result.law[name].holds)
    .map((name) => document.querySelector(`#law-${name} h3`).textContent);
}

// A link to a law leaves the row as it is; the address of a row is one.
function listenToStrip() {
  for (const link of all(".strip a")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      document.getElementById(`law-${link.dataset.law}`).scrollIntoView({ block: "center" });
    });
  }
}
