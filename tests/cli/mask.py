"""Copies a page with every number as # and every bar as =: what is said and in which order. The
numbers themselves are held by unit tests and by the few pages that are kept whole."""
import re
import sys

for line in sys.stdin:
    line = re.sub("[█▉▊▋▌▍▎▏]+", "=", line)
    line = re.sub("·+", ".", line)
    line = re.sub(r"(?<![0-9A-Za-z.-])\d[\d,.]*", "#", line)
    line = re.sub(r"# (GiB|MiB|KiB|TiB|B|µs|ms|s|min|h|d|GB|MB|kB|TB)\b", "# _", line)
    print(re.sub("  +", "  ", line).rstrip())
