# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A GGUF file read and written once more, in Python, from llama.cpp's description of the format."""
import pathlib
import struct

TYPES = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 8: ("Q8_0", 32, 34), 30: ("BF16", 1, 2), 39: ("MXFP4", 32, 17)}
U32, F32, TEXT, ARRAY = 4, 6, 8, 9
FORMATS = {U32: "<I", F32: "<f"}


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


class Gguf:
    """keys: {name: (type, value)}; tensors: {name: (type, dimensions, bytes)}, fastest dimension first."""

    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        magic, version, tensors, keys = struct.unpack_from("<4sIQQ", data)
        assert magic == b"GGUF" and version == 3
        at = 24

        def number(form):
            nonlocal at
            value, = struct.unpack_from(form, data, at)
            at += struct.calcsize(form)
            return value

        def string():
            nonlocal at
            length = number("<Q")
            at += length
            return data[at - length:at].decode()

        self.keys, self.tensors, described = {}, {}, []
        for _ in range(keys):
            name, kind = string(), number("<I")
            self.keys[name] = (kind, string() if kind == TEXT else number(FORMATS[kind]))
        for _ in range(tensors):
            name, rank = string(), number("<I")
            dims = [number("<Q") for _ in range(rank)]
            described.append((name, dims, number("<I"), number("<Q")))
        start = (at + 31) // 32 * 32
        for name, dims, kind, offset in described:
            count = 1
            for extent in dims:
                count *= extent
            _, block, size = TYPES[kind]
            self.tensors[name] = (kind, dims, data[start + offset:start + offset + count // block * size])

    def write(self, path):
        out = struct.pack("<4sIQQ", b"GGUF", 3, len(self.tensors), len(self.keys))
        for name, (kind, value) in self.keys.items():
            out += text(name) + struct.pack("<I", kind)
            out += value if isinstance(value, bytes) else text(value) if kind == TEXT else struct.pack(FORMATS[kind], value)
        offset = 0
        for name, (kind, dims, data) in self.tensors.items():
            out += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
            offset += (len(data) + 31) // 32 * 32
        out += bytes(-len(out) % 32)
        for _, _, data in self.tensors.values():
            out += data + bytes(-len(data) % 32)
        pathlib.Path(path).write_bytes(out)
        return str(path)
