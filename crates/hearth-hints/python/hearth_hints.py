# SPDX-License-Identifier: MIT OR Apache-2.0
"""Data affinity: a thread says which data it is about to work on, and works where that data is.

    import hearth_hints

    with hearth_hints.within("orders"):
        serve(orders)

What the data is made of, a fragment, has a number. Threads on one fragment run on one CPU, its home; that
helps what runs without the interpreter's lock, as NumPy's functions do. All of it is advice: a program does
the same without. The same for C, and more about it, is in hearth.h.

A task of asyncio shares its thread with others: it is to leave before it awaits.
"""

import collections
import ctypes
import importlib.util

__all__ = ["Counts", "counts", "cpus", "fragment", "home", "inherit", "is_here", "within"]

_NUMBERS = range(1 << 64)

# What all threads of this process did until now: see hearth_fragment_counts in hearth.h.
Counts = collections.namedtuple("Counts", "enters at_home moved stayed refused unmatched rehomed unranged")


def _load():
    found = importlib.util.find_spec("_hearth_hints")
    if found is None:
        raise ImportError("hearth_hints has no compiled part: run `pip install` in the folder of hearth_hints.py")
    library = ctypes.CDLL(found.origin)
    number = ctypes.c_uint64
    for name, result, arguments in [
        ("hearth_enter", None, [number]),
        ("hearth_leave", None, []),
        ("hearth_fragment", number, []),
        ("hearth_fragment_at", number, [ctypes.c_void_p]),
        ("hearth_fragment_named", number, [ctypes.c_char_p]),
        ("hearth_fragment_home", ctypes.c_int, [number]),
        ("hearth_fragment_is_here", ctypes.c_int, [number]),
        ("hearth_fragments_inherit", None, [ctypes.c_int]),
        ("hearth_fragment_counts", None, [ctypes.POINTER(number * len(Counts._fields))]),
        ("hearth_cpus", ctypes.c_int, []),
    ]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_library = _load()
_enter, _leave = _library.hearth_enter, _library.hearth_leave


def _number_of(what):
    """The number of a fragment that is given by number, by name, or as the memory of writable data."""
    if isinstance(what, str):
        return _library.hearth_fragment_named(what.encode(errors="surrogatepass"))
    if not isinstance(what, int):
        try:
            return _library.hearth_fragment_at(ctypes.addressof(ctypes.c_char.from_buffer(what)))
        except (TypeError, ValueError) as error:
            raise TypeError(f"a fragment is a number, a name, or data that can be written: {error}") from None
    if what not in _NUMBERS:
        raise ValueError(f"{what} is no fragment's number: they are below 2**64")
    return what


class within:
    """Within a fragment for a block of code: of a number, of a name that all processes share, or of data.

    What it returns may be kept, and used by several threads, within itself, too. Up to 16 deep; fragment 0
    changes nothing.
    """

    __slots__ = ["number"]

    def __init__(self, what):
        self.number = _number_of(what)

    def __enter__(self):
        _enter(self.number)
        return self

    def __exit__(self, *_):
        _leave()


def fragment():
    """The number of the fragment that this thread is in; 0 if it is in none."""
    return _library.hearth_fragment()


def home(what):
    """The CPU where the fragment was last found, or None if it has no home."""
    cpu = _library.hearth_fragment_home(_number_of(what))
    return cpu if cpu >= 0 else None


def is_here(what):
    """Whether the fragment needs no move: for a thread that may choose what to do next."""
    return bool(_library.hearth_fragment_is_here(_number_of(what)))


def inherit(whether):
    """Whether a child of os.fork() is in the fragment of the thread that made it; else it is in none."""
    _library.hearth_fragments_inherit(bool(whether))


def counts():
    """What all threads of this process did until now."""
    into = (ctypes.c_uint64 * len(Counts._fields))()
    _library.hearth_fragment_counts(ctypes.byref(into))
    return Counts(*into)


def cpus():
    """CPUs that this process can get now, at least 1."""
    return _library.hearth_cpus()
