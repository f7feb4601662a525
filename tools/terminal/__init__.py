# SPDX-License-Identifier: Apache-2.0
"""Terminal support for every verb: arguments, exit codes, standard output and standard error."""
