#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""embed_bpf.py SYMBOL HEADER INPUT OUTPUT: a compiled BPF object as C tables in OUTPUT.

The tables hold what src/source/ebpf/load.c needs to load the programs without reading an ELF file: the
instructions of every function, what has to be patched in them (maps, calls, fields of kernel types), the maps,
and the types of the functions as BTF. The object itself is embedded too, for libbpf: the fallback.
"""
import os
import struct
import sys

SHT_SYMTAB, SHT_REL = 2, 9
R_BPF_64_64, R_BPF_64_32 = 1, 10
STT_FUNC, STT_SECTION = 2, 3
INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FUNC_PROTO, VAR, DATASEC, FLOAT, \
    DECL_TAG, TYPE_TAG, ENUM64 = range(1, 20)
MODIFIERS = (TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG)
HAS_SIZE = (INT, STRUCT, UNION, ENUM, FLOAT, ENUM64, DATASEC)
TRAILER = {INT: 4, ARRAY: 12, VAR: 4, DECL_TAG: 4}
PER_MEMBER = {STRUCT: 12, UNION: 12, ENUM: 8, FUNC_PROTO: 8, DATASEC: 12, ENUM64: 12}
CORE_TYPE_KINDS = range(6, 10)  # enum bpf_core_relo_kind: about a type, not about a field
LD_IMM64, CALL = 0x18, 0x85


class Elf:
    """The sections and symbols of a relocatable 64-bit object."""

    def __init__(self, data):
        if data[:5] != b"\x7fELF\x02":
            raise ValueError("not a 64-bit ELF object")
        self.order = "<" if data[5] == 1 else ">"
        table, = self.unpack("Q", data, 0x28)
        count, names_at = self.unpack("HH", data, 0x3c)
        headers = [self.unpack("IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
        names = headers[names_at]
        self.sections = []
        for name, kind, _, _, offset, size, link, info, _, _ in headers:
            text = c_string(data, names[4] + name)
            self.sections.append((text, kind, data[offset:offset + size] if kind != 8 else b"", link, info))
        self.symbols = []
        for _, kind, body, link, _ in self.sections:
            if kind != SHT_SYMTAB:
                continue
            for at in range(0, len(body), 24):
                name, info, _, section, value, size = self.unpack("IBBHQQ", body, at)
                self.symbols.append((c_string(self.sections[link][2], name), info & 15, section, value, size))

    def unpack(self, layout, data, at):
        return struct.unpack_from(self.order + layout, data, at)

    def index(self, name):
        return next((i for i, section in enumerate(self.sections) if section[0] == name), None)

    def body(self, name):
        return self.sections[self.index(name)][2]

    def relocations(self, section):
        """(offset, type, symbol) of everything to be patched in that section."""
        for _, kind, body, _, info in self.sections:
            if kind == SHT_REL and info == section:
                for at in range(0, len(body), 16):
                    offset, what = self.unpack("QQ", body, at)
                    yield offset, what & 0xffffffff, self.symbols[what >> 32]


class Btf:
    """The type information of the object."""

    def __init__(self, elf):
        self.elf, data = elf, elf.body(".BTF")
        _, _, _, header, types, types_size, strings, strings_size = elf.unpack("HBBIIIII", data, 0)
        self.strings = data[header + strings:header + strings + strings_size]
        self.types = [None]  # (name, kind, flag, vlen, size_or_type, trailing bytes)
        at, end = header + types, header + types + types_size
        while at < end:
            name, info, size = elf.unpack("III", data, at)
            kind, vlen = info >> 24 & 31, info & 0xffff
            length = TRAILER.get(kind, 0) + PER_MEMBER.get(kind, 0) * vlen
            self.types.append((self.text(name), kind, info >> 31, vlen, size, data[at + 12:at + 12 + length]))
            at += 12 + length

    def text(self, offset):
        return c_string(self.strings, offset)

    def members(self, type_id):
        """(name, type, bit offset) of the members of a struct or union."""
        _, _, _, vlen, _, rest = self.types[type_id]
        for i in range(vlen):
            name, member, offset = self.elf.unpack("III", rest, 12 * i)
            yield self.text(name), member, offset & 0xffffff if self.types[type_id][2] else offset

    def bare(self, type_id):
        """The type without typedefs and qualifiers."""
        while type_id and self.types[type_id][1] in MODIFIERS:
            type_id = self.types[type_id][4]
        return type_id

    def array(self, type_id):
        element, _, count = self.elf.unpack("III", self.types[type_id][5], 0)
        return element, count

    def size(self, type_id):
        type_id = self.bare(type_id)
        _, kind, _, _, size, _ = self.types[type_id]
        if kind == PTR:
            return 8
        if kind == ARRAY:
            element, count = self.array(type_id)
            return self.size(element) * count
        return size

    def shape(self, type_id):
        """The letter for what a field is: see struct ew_image_field."""
        type_id = self.bare(type_id)
        kind, rest = self.types[type_id][1], self.types[type_id][5]
        if kind == ARRAY:
            return "a" + self.shape(self.array(type_id)[0])
        if kind == INT:
            return "i" if self.elf.unpack("I", rest, 0)[0] >> 24 & 1 else "u"
        return {STRUCT: "s", UNION: "s", PTR: "p"}[kind]


def c_string(data, at):
    return data[at:data.index(b"\0", at)].decode()


def find_functions(elf):
    """{(section, offset): (name, instructions, section name)}"""
    found = {}
    for name, kind, section, value, size in elf.symbols:
        if kind == STT_FUNC and section != 0:
            text, _, body, _, _ = elf.sections[section]
            found[(section, value)] = (name, body[value:value + size], text)
    return found


def map_definitions(elf, btf):
    """[(name, type, key size, value size, entries, flags)], by what __uint and __type declare."""
    section = next(t for t in btf.types[1:] if t[0] == ".maps" and t[1] == DATASEC)
    maps = []
    for i in range(section[3]):
        variable, = elf.unpack("I", section[5], 12 * i)
        values = {"type": 0, "max_entries": 0, "map_flags": 0, "key": 0, "value": 0}
        for name, member, _ in btf.members(btf.bare(btf.types[variable][4])):
            target = btf.types[btf.bare(member)][4]  # all are pointers
            values[name] = btf.size(target) if name in ("key", "value") else btf.array(btf.bare(target))[1]
        maps.append((btf.types[variable][0], values["type"], values["key"], values["value"],
                     values["max_entries"], values["map_flags"]))
    return maps


def describe_field(btf, type_id, kind, access):
    """What a CO-RE relocation names, by text: (kind, type, path, size, letter)."""
    type_id = btf.bare(type_id)
    name = btf.types[type_id][0].split("___")[0]
    if btf.types[type_id][1] != STRUCT:
        raise ValueError(f"relocation against {name}, which is not a struct")
    if kind in CORE_TYPE_KINDS:
        return kind, name, "", 0
    steps = [int(step) for step in access.split(":")]
    if steps[0] != 0:
        raise ValueError(f"relocation of {name}: {access}")
    path = ""
    for step in steps[1:]:
        type_id = btf.bare(type_id)
        if btf.types[type_id][1] == ARRAY:
            type_id = btf.array(type_id)[0]
            path += f"[{step}]"
            continue
        member, type_id, _ = list(btf.members(type_id))[step]
        if member:
            path += f".{btf.shape(type_id)}:{member}"
    return kind, name, path, 0 if btf.types[btf.bare(type_id)][1] == ARRAY else btf.size(type_id)


def ext_info(elf, data, at, length):
    """[(section name, record)] of one part of .BTF.ext."""
    end = at + length
    if length == 0:
        return
    size, = elf.unpack("I", data, at)
    at += 4
    while at < end:
        name, count = elf.unpack("II", data, at)
        at += 8
        for _ in range(count):
            yield name, data[at:at + size]
            at += size


class Image:
    """Everything that goes into the tables."""

    def __init__(self, elf):
        self.elf, self.btf = elf, Btf(elf)
        self.functions = find_functions(elf)
        self.keys = sorted(self.functions)
        self.maps = map_definitions(elf, self.btf)
        self.fields, self.kfuncs = [], []
        self.relocations = {key: [] for key in self.keys}
        self.type_ids = {}
        for section in sorted({key[0] for key in self.keys}):
            for offset, kind, symbol in elf.relocations(section):
                self.relocate(section, offset, kind, symbol)
            self.relocate_near_calls(section)
        self.read_ext()
        for entries in self.relocations.values():
            entries.sort()

    def function_at(self, section, offset):
        key = max(k for k in self.keys if k[0] == section and k[1] <= offset)
        return key, (offset - key[1]) // 8

    def code(self, section, offset):
        return self.elf.unpack("BBhi", self.elf.sections[section][2], offset)

    def relocate(self, section, offset, kind, symbol):
        key, insn = self.function_at(section, offset)
        code, _, _, imm = self.code(section, offset)
        name, symbol_kind, target, value, _ = symbol
        target_name = self.elf.sections[target][0] if target else ""
        if kind == R_BPF_64_32 and code == CALL:
            if target == 0:
                if name not in self.kfuncs:
                    self.kfuncs.append(name)
                entry = ("KFUNC", self.kfuncs.index(name))
            else:
                called = (imm + 1) * 8 if symbol_kind == STT_SECTION else value
                entry = ("CALL", self.keys.index((target, called)))
        elif kind == R_BPF_64_64 and code == LD_IMM64 and target_name == ".maps":
            entry = ("MAP", [m[0] for m in self.maps].index(name))
        elif kind == R_BPF_64_64 and code == LD_IMM64 and target_name == ".rodata":
            entry = ("RODATA", value + imm)
        elif kind == R_BPF_64_64 and code == LD_IMM64:
            called = imm if symbol_kind == STT_SECTION else value
            entry = ("CALLBACK", self.keys.index((target, called)))
        else:
            raise ValueError(f"{self.functions[key][0]}+{insn}: unknown relocation {kind} against {name}")
        self.relocations[key].append((insn, *entry))

    def relocate_near_calls(self, section):
        """Calls within a section have no relocation, but functions are placed anew."""
        relocated = {offset for offset, _, _ in self.elf.relocations(section)}
        body = self.elf.sections[section][2]
        for offset in range(0, len(body), 8):
            code, registers, _, imm = self.code(section, offset)
            source = registers >> 4 if self.elf.order == "<" else registers & 15
            if code == CALL and source == 1 and offset not in relocated:
                key, insn = self.function_at(section, offset)
                target = (section, offset + (imm + 1) * 8)
                self.relocations[key].append((insn, "CALL", self.keys.index(target)))

    def read_ext(self):
        elf, data = self.elf, self.elf.body(".BTF.ext")
        header, functions, functions_size, _, _, fields, fields_size = elf.unpack("IIIIIII", data, 4)
        for name, record in ext_info(elf, data, header + functions, functions_size):
            offset, type_id = elf.unpack("II", record, 0)
            self.type_ids[(elf.index(self.btf.text(name)), offset)] = type_id
        for name, record in ext_info(elf, data, header + fields, fields_size):
            offset, type_id, access, kind = elf.unpack("IIII", record, 0)
            field = describe_field(self.btf, type_id, kind, self.btf.text(access))
            if field not in self.fields:
                self.fields.append(field)
            key, insn = self.function_at(elf.index(self.btf.text(name)), offset)
            self.relocations[key].append((insn, "FIELD", self.fields.index(field)))

    def function_types(self):
        """BTF with the functions and what they refer to; {old id: new id} of the functions."""
        return TypeWriter(self.btf).write(sorted(set(self.type_ids.values())))


class TypeWriter:
    """Copies types, and those that they refer to, into a new BTF blob."""

    def __init__(self, btf):
        self.btf, self.order, self.ids, self.strings = btf, [], {0: 0}, {"": 0}
        self.text = b"\0"

    def collect(self, type_id):
        if type_id in self.ids:
            return
        self.ids[type_id] = len(self.order) + 1
        self.order.append(type_id)
        for target in self.references(type_id):
            self.collect(target)

    def references(self, type_id):
        unpack = self.btf.elf.unpack
        _, kind, _, vlen, target, rest = self.btf.types[type_id]
        found = [] if kind in HAS_SIZE or kind == FWD else [target]
        if kind == ARRAY:
            found = list(unpack("II", rest, 0))
        elif kind in (STRUCT, UNION):
            found = [unpack("I", rest, 12 * i + 4)[0] for i in range(vlen)]
        elif kind == FUNC_PROTO:
            found += [unpack("I", rest, 8 * i + 4)[0] for i in range(vlen)]
        elif kind in (VAR, DATASEC, DECL_TAG):
            raise ValueError(f"a function's type refers to BTF kind {kind}")
        return found

    def string(self, text):
        if text not in self.strings:
            self.strings[text] = len(self.text)
            self.text += text.encode() + b"\0"
        return self.strings[text]

    def trailer(self, kind, vlen, rest):
        """The same, with the new numbers of names and types."""
        unpack, order = self.btf.elf.unpack, self.btf.elf.order
        if kind == ARRAY:
            element, index, count = unpack("III", rest, 0)
            return struct.pack(order + "III", self.ids[element], self.ids[index], count)
        out = b""
        for i in range(vlen if kind in PER_MEMBER else 0):
            size = PER_MEMBER[kind]
            member = list(unpack("I" * (size // 4), rest, size * i))
            member[0] = self.string(self.btf.text(member[0]))
            if kind in (STRUCT, UNION, FUNC_PROTO):
                member[1] = self.ids[member[1]]
            out += struct.pack(order + "I" * len(member), *member)
        return out or rest

    def write(self, roots):
        for root in roots:
            self.collect(root)
        body, order = b"", self.btf.elf.order
        for type_id in self.order:
            name, kind, flag, vlen, target, rest = self.btf.types[type_id]
            if kind not in HAS_SIZE and kind not in (ARRAY, FWD):
                target = self.ids[target]
            body += struct.pack(order + "III", self.string(name), flag << 31 | kind << 24 | vlen, target)
            body += self.trailer(kind, vlen, rest)
        header = struct.pack(order + "HBBIIIII", 0xeb9f, 1, 0, 24, 0, len(body), len(body), len(self.text))
        return header + body + self.text, self.ids


def byte_lines(data):
    return ["    " + ",".join(str(byte) for byte in data[at:at + 24]) + "," for at in range(0, len(data), 24)]


def quoted(text):
    return '"' + text + '"'


def embed(symbol, header, data):
    image = Image(Elf(data))
    blob, type_ids = image.function_types()
    out = ["/* SPDX-License-Identifier: MIT */", f"/* Generated by {os.path.basename(__file__)}. */",
           f'#include "{header}"', "", "_Alignas(8) static const unsigned char object[] = {", *byte_lines(data), "};",
           "_Alignas(8) static const unsigned char instructions[] = {"]
    functions, relocations, insn_at = [], [], 0
    for key in image.keys:
        name, body, section = image.functions[key]
        out += byte_lines(body)
        entries = image.relocations[key]
        functions.append(f"    {{{quoted(name)}, {'NULL' if section == '.text' else quoted(section)}, {insn_at}, "
                         f"{len(body) // 8}, {len(relocations)}, {len(entries)}, {type_ids[image.type_ids[key]]}}},")
        relocations += [f"    {{{insn}, EW_IMAGE_{kind}, {target}}}," for insn, kind, target in entries]
        insn_at += len(body) // 8
    out += ["};", "_Alignas(8) static const unsigned char btf[] = {", *byte_lines(blob), "};",
            "static const struct ew_image_function functions[] = {", *functions, "};",
            "static const struct ew_image_relocation relocations[] = {", *relocations, "};",
            "static const struct ew_image_field fields[] = {",
            *(f"    {{{kind}, {size}, {quoted(name)}, {quoted(path)}}}," for kind, name, path, size in image.fields),
            *([] if image.fields else ["    {0, 0, NULL, NULL},"]),
            "};", "static const struct ew_image_map maps[] = {",
            *(f"    {{{quoted(name)}, {', '.join(str(value) for value in rest)}}}," for name, *rest in image.maps),
            "};", "static const char *const kfuncs[] = {",
            *(f"    {quoted(name)}," for name in image.kfuncs), "    NULL,", "};",
            f"const struct ew_image {symbol} = {{", "    object,", "    sizeof object,", "    instructions,",
            "    functions,", "    sizeof functions / sizeof *functions,", "    relocations,", "    fields,",
            f"    {len(image.fields)},", "    maps,", "    sizeof maps / sizeof *maps,", "    kfuncs,",
            "    btf,", "    sizeof btf,", f"    {quoted(c_string(image.elf.body('license'), 0))},", "};", ""]
    return "\n".join(out)


def main(argv):
    if len(argv) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    _, symbol, header, source, target = argv
    with open(source, "rb") as file:
        data = file.read()
    try:
        text = embed(symbol, header, data)
    except (ValueError, KeyError, StopIteration, struct.error) as error:
        print(f"embed_bpf.py: {source}: {error!r}", file=sys.stderr)
        return 1
    with open(target, "w", encoding="ascii") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
