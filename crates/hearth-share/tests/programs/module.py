"""For each line that it reads, a parallel region in a library that only this script sees."""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_LOCAL)
for line in sys.stdin:
    print("threads", library.threads(), flush=True)
