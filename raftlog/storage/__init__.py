# SPDX-License-Identifier: Apache-2.0
"""Files: everything here does I/O."""
