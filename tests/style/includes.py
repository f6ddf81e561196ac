#!/usr/bin/env python3
"""Fails on a name of the standard library, fmt or nlohmann whose header neither the file nor one that it includes gives it.

The release build compiles many files as one, where such a file borrows from its neighbours; `dev` and the sanitizers compile each alone.
What a header of the system gives is asked of the compiler (`-M`). Read are .h and .cpp, without what a name in a comment or string means.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
TOPS = ("probes", "workloads", "orchestrator", "reports", "profiles", "tests")
COMPILER = os.environ.get("CXX", "g++")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.S)
# What a file names, and the file of libstdc++, fmt or nlohmann that defines it.
WANTED = [
    (re.compile(names), given)
    for names, given in {
        r"std::vector\b": "stl_vector.h",
        r"std::(string|to_string)\b": "basic_string.h",
        r"std::string_view\b": "string_view",
        r"std::(optional|nullopt)\b": "optional",
        r"std::(map|multimap)\b": "stl_map.h",
        r"std::(set|multiset)\b": "stl_set.h",
        r"std::(array|to_array)\b": "array",
        r"std::deque\b": "stl_deque.h",
        r"std::span\b": "span",
        r"std::(function|bind_front)\b": "std_function.h",
        r"std::(unique_ptr|make_unique)\b": "unique_ptr.h",
        r"std::(shared_ptr|make_shared)\b": "shared_ptr.h",
        r"std::(expected|unexpected)\b": "expected",
        r"std::(variant|visit|holds_alternative|get_if)\b": "variant",
        r"std::filesystem\b": "fs_path.h",
        r"std::ranges::(sort|find|find_if|(any|all|none)_of|count|count_if|copy|fill|transform|reverse|contains|replace)\s*\(": "ranges_algo.h",
        r"std::(sort|find_if|(any|all|none)_of|count_if|transform|nth_element|stable_sort|clamp|shuffle)\s*\(": "stl_algo.h",
        r"std::chrono\b": "chrono.h",
        r"std::(ifstream|ofstream|fstream)\b": "fstream",
        r"std::(ostringstream|istringstream|stringstream)\b": "sstream",
        r"std::atomic\b": "atomic",
        r"std::(thread|jthread)\b": "std_thread.h",
        r"std::this_thread::sleep": "this_thread_sleep.h",
        r"std::(mutex|scoped_lock)\b": "mutex",
        r"std::numeric_limits\b": "limits",
        r"std::(accumulate|iota|reduce|gcd|lcm|inner_product)\b": "stl_numeric.h",
        r"std::(runtime_error|logic_error|invalid_argument|out_of_range)\b": "stdexcept",
        r"std::(error_code|system_error)\b": "system_error",
        r"std::(to_chars|from_chars)\b": "charconv",
        r"std::(exchange|move|forward)\b": "move.h",
        r"std::(sqrt|floor|ceil|round|pow|log|log2|exp|isfinite|isnan|lround|llround|hypot)\b": "cmath",
        r"std::(memcpy|memcmp|memset|strcmp|strlen|strerror|memmove)\b": "cstring",
        r"std::(mt19937|mt19937_64|random_device|\w+_distribution)\b": "random.h",
        r"std::(cout|cerr)\b": "iostream",
        r"std::(bit_cast|popcount|countr_zero|bit_ceil|bit_width)\b": "bit",
        r"std::u?int(8|16|32|64)_t\b": "cstdint",
        r"std::views::\w": "ranges",
        r"fmt::(format|print)\b": "format.h",
        r"nlohmann::(json|ordered_json)\b": "json_fwd.hpp",
    }.items()
]


def given_by(header):
    """The files that a header of the system brings, by their last names; empty where it is not installed."""
    command = [COMPILER, "-std=c++23", "-M", "-x", "c++", "-"]
    done = subprocess.run(command, input=f"#include <{header}>\n", capture_output=True, text=True)
    return {pathlib.PurePath(word).name for word in done.stdout.replace("\\\n", " ").split()[1:]}


def main():
    paths = [path for top in TOPS for path in (ROOT / top).rglob("*") if path.suffix in (".h", ".cpp")]
    text = {str(path.relative_to(ROOT)): path.read_text(errors="replace") for path in paths}
    text = {name: body for name, body in text.items() if "/planted/" not in name}
    includes = {name: INCLUDE.findall(body) for name, body in text.items()}
    system = sorted({header for headers in includes.values() for header in headers} - text.keys())
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        given = dict(zip(system, pool.map(given_by, system)))

    def reach(name):
        seen, waiting = set(), [name]
        while waiting:
            header = waiting.pop()
            if header not in seen:
                seen.add(header)
                waiting += includes.get(header, [])
        return set().union(*(given.get(header, set()) for header in seen))

    wrong = []
    for name, body in sorted(text.items()):
        code, reached = HIDDEN.sub(" ", body), reach(name)
        for names, file in WANTED:
            if (found := names.search(code)) and file not in reached:
                wrong.append(f"{name}: {found.group().rstrip('( ')}, and no included header gives it ({file})")
    print("\n".join(wrong))
    print(f"{len(text)} files, {len(wrong)} names without a header")
    sys.exit(1 if wrong or not text else 0)


main()
