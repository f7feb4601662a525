# SPDX-License-Identifier: Apache-2.0
"""MirrorMaker: whose topic a name is, and the verb ``topics``."""
