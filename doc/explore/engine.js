// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The compiled reference, which stands in the page as base64: a page that was opened as a file may load nothing else.
"use strict";
async function openReference(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const refused = () => {
    throw new Error("the reference made a system call");
  };
  const calls = { fd_close: refused, fd_seek: refused, fd_write: refused };
  const { instance } = await WebAssembly.instantiate(bytes, { wasi_snapshot_preview1: calls });
  instance.exports._initialize();
  return instance.exports;
}
