"""Writes sections.hex from docs/reference/file-format.md alone: python3 sections.py > sections.hex"""
import struct


def crc32c(data):
    c = 0xFFFFFFFF
    for byte in data:
        c ^= byte
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    return c ^ 0xFFFFFFFF


def pad(b, to):
    return b + bytes(-len(b) % to)


sections = [  # name, type, shape, payload
    ("a/b", 2, [2], struct.pack("<2i", 1, -1)),
    ("f", 4, [1, 1], struct.pack("<f", 1.5)),
]
size = sum(len(pad(bytes(24 + 8 * len(shape) + len(name)), 8)) for name, _, shape, _ in sections)
end = len(pad(bytes(64 + size), 64))
table, body = b"", b""
for name, kind, shape, data in sections:
    body = pad(body, 64)
    at = end + len(body)
    table += pad(struct.pack("<IBBHQQ", crc32c(data), kind, len(shape), len(name), at, len(data))
                 + struct.pack(f"<{len(shape)}Q", *shape) + name.encode(), 8)
    body += data
head = struct.pack("<8sIIQQ24sI", b"\x89HEDDLE\n", 1, len(sections), end + len(body), size, b"demo", crc32c(table))
file = pad(head + struct.pack("<I", crc32c(head)) + table, 64) + body
for i in range(0, len(file), 32):
    print(file[i:i + 32].hex())
