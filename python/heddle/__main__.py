"""`python -m heddle` is the program `peer`."""

import sys

from heddle._program import main

sys.exit(main())
