#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""python_abi.py [--check]: writes python/etwatch/_abi.py, the public C headers as ctypes declarations.

Reads include/etwatch/*.h and parses the subset of C that they use: macros of X lists, structs, unions inside them,
enums, numbers by #define, function types and functions. Inline functions have no symbol in the library and are
skipped. Anything else is an error, never omitted. --check only compares and reports whether the file is up to date.
"""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.join("python", "etwatch", "_abi.py")

WIDTH = 118
PLAIN = {
    "char": "c_char",
    "int": "c_int",
    "double": "c_double",
    "size_t": "c_size_t",
    "void": "None",
    **{f"{sign}int{bits}_t": f"c_{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)},
}
TOKEN = re.compile(r"[A-Za-z_]\w*|0[xX][0-9a-fA-F]+|\d+|<<|[{}()\[\]*,;=+\-:|]")
INLINE = re.compile(r"^static inline [^;{]*\{\n.*?^\}\n", re.S | re.M)  # functions for C only
HEAD = '''# SPDX-License-Identifier: MIT
"""The C interface as ctypes declarations. Written by scripts/python_abi.py: do not change by hand."""
import ctypes
'''


class Unknown(Exception):
    """C that this script cannot parse."""


def class_name(struct):
    """etwatch_error_info: ErrorInfo."""
    bare = struct[len("etwatch_"):] if struct.startswith("etwatch_") else struct
    return "".join(part[:1].upper() + part[1:] for part in bare.split("_"))


def wrap(head, items, tail, indent):
    """The items in lines of limited length."""
    lines = [head]
    line = indent
    for item in items:
        if len(line) + len(item) + 1 > WIDTH and line != indent:
            lines.append(line.rstrip())
            line = indent
        line += item + ", "
    return lines + [line.rstrip(), tail]


class Headers:
    """The text of all headers without comments and with the X lists expanded."""

    def __init__(self, root):
        self.macros = {}  # name: (parameters, body)
        self.version = {}
        self.lists = {}  # X list: its rows
        self.numbers = {}  # #define: its value
        self.text = ""
        names = sorted(os.path.basename(path) for path in glob.glob(os.path.join(root, "include", "etwatch", "*.h")))
        names.sort(key=lambda name: (name != "etwatch.h", name != "trace.h", name))
        for name in names:
            with open(os.path.join(root, "include", "etwatch", name), encoding="utf-8") as file:
                self.text += self.expand(file.read())

    def expand(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        text = text.replace("\\\n", " ")
        out, skipping = [], []  # a stack: whether the line is inside a part for C++ or another system
        for line in text.split("\n"):
            directive = re.match(r"\s*#\s*(\w+)\s*(.*)", line)
            if directive is None:
                if not any(skipping):
                    out.append(self.substitute(line))
                continue
            word, rest = directive.groups()
            if word in ("if", "ifdef"):
                skipping.append(True)
            elif word == "ifndef":
                skipping.append(False)
            elif word in ("else", "elif"):
                skipping[-1] = not skipping[-1] and word == "else"
            elif word == "endif":
                skipping.pop()
            elif word == "define" and not any(skipping):
                self.define(rest)
        return INLINE.sub("", "\n".join(out)) + "\n"

    def define(self, rest):
        name, parameters, body = re.match(r"(\w+)(\([^)]*\))?\s*(.*)", rest).groups()
        if parameters is None:
            if name.startswith("ETWATCH_VERSION_"):
                self.version[name[len("ETWATCH_VERSION_"):]] = int(body)
            elif re.fullmatch(r"\d+", body.strip()):
                self.numbers[name] = int(body)
            return
        arguments = [p.strip() for p in parameters[1:-1].split(",")]
        self.macros[name] = (arguments, body)
        if arguments == ["X"]:
            self.lists[name] = [[part.strip() for part in re.sub(r'"[^"]*"', "", row).split(",")]
                                for row in re.findall(r"X\(((?:[^()\"]|\"[^\"]*\")*)\)", body)]

    def substitute(self, line):
        use = re.match(r"\s*(ETWATCH_\w+)\((ETWATCH_\w+)\)\s*$", line)
        if use is None or use.group(1) not in self.lists:
            return line
        arguments, body = self.macros[use.group(2)]
        arguments = [a for a in arguments if a != "..."]
        rows = []
        for row in self.lists[use.group(1)]:
            text = body
            for name, value in zip(arguments, row):
                text = re.sub(rf"##\s*{name}\b", value, text)
                text = re.sub(rf"\b{name}\b", value, text)
            rows.append(text)
        return "\n".join(rows)


def without_inline(text):
    """The text without `static inline` functions: from the keyword to the brace that closes the body."""
    while (begin := text.find("static inline ")) >= 0:
        end, depth = text.index("{", begin) + 1, 1
        while depth > 0:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[:begin] + text[end:]
    return text


class Parser:
    """Tokens to declarations, in order."""

    def __init__(self, text, numbers=()):
        text = without_inline(re.sub(r'extern\s+"C"\s*\{', "", text))
        unknown = re.sub(TOKEN, " ", text).split()
        if unknown:
            raise Unknown(f"characters {unknown[:3]!r}")
        self.tokens = TOKEN.findall(text)
        self.at = 0
        self.constants = dict(numbers)
        self.structs = {}  # name: fields, or None: opaque
        self.function_types = {}
        self.functions = {}

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def take(self, *wanted):
        token = self.peek()
        if wanted and token not in wanted:
            raise Unknown(f"{token!r} where {wanted!r} is expected: "
                          + " ".join(self.tokens[max(0, self.at - 12):self.at + 4]))
        self.at += 1
        return token

    def parse(self):
        while self.at < len(self.tokens):
            if self.peek() == "typedef":
                self.typedef()
            elif self.peek() == "enum" and self.peek(2) == "{":
                self.enum()
            elif self.peek() == "struct" and self.peek(2) in ("{", ";"):
                self.struct()
            else:
                self.function()

    def enum(self):
        self.take("enum")
        self.take()
        self.take("{")
        value = -1
        while self.peek() != "}":
            name = self.take()
            value = value + 1
            if self.peek() == "=":
                self.take()
                text = ""
                while self.peek() not in (",", "}"):
                    text += self.take() + " "
                value = self.value(text)
            self.constants[name] = value
            if self.peek() == ",":
                self.take()
        self.take("}")
        self.take(";")

    def value(self, text):
        text = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)\s*[uU]\b", r"\1", text)
        return int(eval(text, {"__builtins__": {}}, dict(self.constants)))  # numbers, << and | only

    def base(self):
        """One type without its asterisks: (kind, name)."""
        while self.peek() == "const":
            self.take()
        word = self.take()
        if word in ("struct", "enum"):
            word = f"{word} {self.take()}"
        while self.peek() == "const":
            self.take()
        return word

    def stars(self):
        count = 0
        while self.peek() in ("*", "const"):
            count += self.take() == "*"
        return count

    def struct(self):
        self.take("struct")
        name = self.take()
        if self.peek() == "{":
            self.structs[name] = self.members()
        else:
            self.structs.setdefault(name, None)
        self.take(";")

    def members(self):
        fields = []
        self.take("{")
        while self.peek() != "}":
            if self.peek() == "union":
                self.take()
                inner = self.members()
                fields.append((self.take(), ("union", inner)))
                self.take(";")
                continue
            base = self.base()
            while True:
                stars = self.stars()
                if self.peek() == "(":
                    fields.append(self.pointer_to_function(base, stars))
                else:
                    name, sizes = self.take(), []
                    while self.peek() == "[":
                        self.take()
                        sizes.append(self.value(self.take()))
                        self.take("]")
                    fields.append((name, ("plain", base, stars, sizes)))
                if self.take(",", ";") == ";":
                    break
        self.take("}")
        return fields

    def pointer_to_function(self, base, stars):
        self.take("(")
        self.take("*")
        name = self.take()
        self.take(")")
        return name, ("function", (base, stars), self.parameters())

    def parameters(self):
        self.take("(")
        if self.peek() == "void" and self.peek(1) == ")":
            self.take()
        types = []
        while self.peek() != ")":
            base = self.base()
            stars = self.stars()
            if self.peek() == "(":
                types.append(self.pointer_to_function(base, stars)[1])
            else:
                types.append(("plain", base, stars, []))
                if self.peek() not in (",", ")"):
                    self.take()
                if self.peek() == "[":
                    raise Unknown("an array as a parameter")
            if self.peek() == ",":
                self.take()
        self.take(")")
        return types

    def typedef(self):
        self.take("typedef")
        base = self.base()
        name, kind = self.pointer_to_function(base, self.stars())
        self.function_types[name] = kind
        self.take(";")

    def function(self):
        if self.peek() == "}":  # of extern "C"
            self.take()
            return
        self.take("ETWATCH_API")
        base = self.base()
        stars = self.stars()
        name = self.take()
        self.functions[name] = (("plain", base, stars, []), self.parameters())
        self.take(";")


class Writer:
    """Declarations to Python."""

    def __init__(self, parser):
        self.parser = parser
        self.filled = set()

    def of(self, kind):
        """The ctypes expression of a type."""
        if kind[0] == "function":
            types = [self.of(("plain", *kind[1], [])), *map(self.of, kind[2])]
            return f"ctypes.CFUNCTYPE({', '.join(types)})"
        _, base, stars, sizes = kind
        if base in self.parser.function_types:
            found = base
        elif base in ("char", "void") and stars > 0:
            found, stars = f"c_{base}_p", stars - 1
        elif base.startswith("struct "):
            struct = base[len("struct "):]
            known = self.parser.structs.get(struct) is not None
            found, stars = (class_name(struct), stars) if known else ("c_void_p", stars - 1)  # opaque: its address
        elif base.startswith("enum ") or base in PLAIN:
            found = PLAIN.get(base, "c_uint32")
        else:
            raise Unknown(f"type {base!r}")
        for _ in range(stars):
            found = f"POINTER({found})"
        for size in reversed(sizes):
            found = f"{found} * {size}"
        return found

    def declare(self, name, fields, kind="Structure"):
        """Empty classes: enough for pointers to them."""
        lines = []
        for field, type_ in fields:
            if type_[0] == "union":
                lines += self.declare(class_name(name) + field.upper(), type_[1], "Union")
        title = name if kind == "Union" else class_name(name)
        return lines + ["", "", f"class {title}(ctypes.{kind}):", "    pass"]

    def fill(self, name, fields, kind="Structure"):
        """The fields of one struct, after those that it contains."""
        lines, rows = [], []
        title = name if kind == "Union" else class_name(name)
        if title in self.filled:
            return []
        self.filled.add(title)
        for field, type_ in fields:
            if type_[0] == "union":
                inner = class_name(name) + field.upper()
                lines += self.fill(inner, type_[1], "Union")
                rows.append(f'("{field}", {inner})')
                continue
            if type_[0] == "plain" and type_[1].startswith("struct ") and type_[2] == 0:
                inner = type_[1][len("struct "):]
                lines += self.fill(inner, self.parser.structs[inner])
            rows.append(f'("{field}", {self.of(type_)})')
        return lines + wrap(f"{title}._fields_ = [", rows, "]", "    ")

    def text(self, headers):
        parser = self.parser
        lines = ["from typing import Any, Dict, List, Tuple", ""]
        version = ".".join(str(headers.version[part]) for part in ("MAJOR", "MINOR", "PATCH"))
        lines += [f'VERSION = "{version}"', ""]
        lines += [f"{name} = {value}" for name, value in {**headers.numbers, **parser.constants}.items()
                  if not name.startswith("ETWATCH_M_")]
        lines += ["", "# The metrics in the order of their indexes: name, C type, kind.",
                  "METRICS: Tuple[Tuple[str, str, str], ...] = ("]
        rows = [f'("{row[0]}", "{row[1]}", "{row[2]}")' for row in headers.lists["ETWATCH_METRICS"]]
        lines[-1:] = wrap(lines[-1], rows, ")", "    ")
        lines += ["ERRORS: Tuple[Tuple[str, int], ...] = ("]
        lines += [f'    ("{row[0]}", {row[1]}),' for row in headers.lists["ETWATCH_ERRORS"]]
        lines += [")"]
        known = {name: fields for name, fields in parser.structs.items() if fields is not None}
        for name, fields in known.items():
            lines += self.declare(name, fields)
        lines += ["", ""]
        for name, kind in parser.function_types.items():
            lines += [f"{name} = {self.of(kind)}"]
        for name, fields in known.items():
            lines += self.fill(name, fields)
        lines += ["", "# The structs by their C name.", "STRUCTS: Dict[str, Any] = {"]
        lines += [f'    "{name}": {class_name(name)},' for name in known]
        lines += ["}", "", "# Function: what it returns, what it takes.",
                  "FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {"]
        for name, (result, arguments) in parser.functions.items():
            types = [self.of(a) for a in arguments]
            row = f'    "{name}": ({self.of(result)}, [{", ".join(types)}]),'
            lines += [row] if len(row) <= WIDTH else \
                wrap(f'    "{name}": ({self.of(result)}, [', types, "    ]),", "        ")
        body = "\n".join(lines + ["}"]) + "\n"
        used = sorted(set(re.findall(r"\bc_\w+|\bPOINTER\b", body)))
        return HEAD + "\n".join(wrap("from ctypes import (", used, ")", "    ")) + "\n" + body


def generate(root=ROOT):
    headers = Headers(root)
    parser = Parser(headers.text, headers.numbers)
    parser.parse()
    return Writer(parser).text(headers)


def main(argv):
    path = os.path.join(ROOT, TARGET)
    text = generate()
    if "--check" in argv[1:]:
        with open(path, encoding="utf-8") as file:
            same = file.read() == text
        if not same:
            print(f"{TARGET} does not match the headers: run scripts/python_abi.py")
        return 0 if same else 1
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
