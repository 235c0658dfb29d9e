// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a page can do beyond being read: search, a look at a statement where it is cited, copying code.
// Without scripts a page loses these and nothing else. Every file it asks for stands beside it.
"use strict";
const root = document.currentScript.dataset.root;

function loaded(name) {
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = root + name;
    script.onload = done;
    script.onerror = failed;
    document.head.append(script);
  });
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// ---- search: the sections of all chapters, indexed when the field is first entered

let index = null;
async function sections() {
  if (index) return index;
  await Promise.all([loaded("minisearch.js"), loaded("sections.js")]);
  index = new MiniSearch({ idField: "at", fields: ["name", "title", "text"],
                           storeFields: ["name", "title", "chapter"],
                           searchOptions: { boost: { name: 4, title: 3 }, prefix: true, fuzzy: 0.15 } });
  index.addAll(window.bookSections);
  return index;
}

function searchField(place) {
  const field = element("input", { type: "search", placeholder: "Search", ariaLabel: "Search the book" });
  const list = element("ol", { className: "found", ariaLive: "polite" });
  field.addEventListener("focus", sections);
  field.addEventListener("input", async () => {
    const asked = field.value.trim();
    const all = asked ? (await sections()).search(asked) : [];
    const found = [...all.filter(({ name }) => name === asked), ...all.filter(({ name }) => name !== asked)].slice(0, 12);
    list.replaceChildren(...found.map(({ id, title, chapter }) => element("li", {},
      element("a", { href: root + id, textContent: title }), element("small", { textContent: chapter }))));
    if (asked && !found.length) list.append(element("li", { textContent: "Nothing found." }));
  });
  place.after(element("div", { className: "search" }, field, list));
}
document.querySelectorAll(".home").forEach(searchField);

// ---- previews: a link to a statement shows it, on hover and on focus

const card = element("div", { className: "preview", hidden: true, role: "tooltip", id: "preview" });
document.body.append(card);
window.bookPreviews = {};
let wanted = null;

async function show(link) {
  wanted = link;
  const id = decodeURIComponent(link.hash.replace(/^#.*?eq-/, ""));
  if (!bookPreviews[id]) await loaded(`previews/${id}.js`);
  if (wanted !== link) return;
  card.innerHTML = bookPreviews[id];
  card.hidden = false;
  const at = link.getBoundingClientRect(), size = card.getBoundingClientRect();
  const below = at.bottom + size.height + 8 < innerHeight || at.top < size.height + 8;
  card.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - size.width - 8))}px`;
  card.style.top = `${below ? at.bottom + 6 : at.top - size.height - 6}px`;
  link.setAttribute("aria-describedby", "preview");
}
function hide() {
  wanted?.removeAttribute("aria-describedby");
  wanted = null;
  card.hidden = true;
}
for (const link of document.querySelectorAll('main a[href*="eq-"]:not(.number)')) {
  for (const event of ["mouseenter", "focus"]) link.addEventListener(event, () => show(link));
  for (const event of ["mouseleave", "blur"]) link.addEventListener(event, hide);
}
document.addEventListener("keydown", ({ key }) => { if (key === "Escape") hide(); });

// ---- a button on each block of code

for (const block of document.querySelectorAll("body:not(.source) main pre")) {
  const button = element("button", { className: "copy", type: "button", textContent: "Copy" });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.innerText);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  const holder = element("div", { className: "copied" });
  block.before(holder);
  holder.append(button, block);
}

// ---- contents: the chapter that is read stands in sight

{
  const side = document.querySelector("nav.side"), here = side?.querySelector(".here");
  if (here && here.offsetTop > side.clientHeight / 2) side.scrollTop = here.offsetTop - side.clientHeight / 3;
}

// ---- slides: the arrow keys turn the page

if (document.body.classList.contains("slides")) {
  const slides = [...document.querySelectorAll("section.slide")];
  document.addEventListener("keydown", ({ key, target }) => {
    const step = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 }[key];
    if (!step || target.matches("input")) return;
    const here = slides.findIndex((slide) => slide.getBoundingClientRect().bottom > 40);
    slides[here + step]?.scrollIntoView();
  });
}
