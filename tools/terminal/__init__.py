# SPDX-License-Identifier: Apache-2.0
"""What every verb needs of a terminal: arguments, exit codes, standard output and standard error."""
