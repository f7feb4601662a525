# SPDX-License-Identifier: Apache-2.0
"""Options of the JVMs that tests start.

Most live for seconds: they never earn back the work of the second compiler, or of more threads that collect garbage.
"""

from typing import Final

OPTIONS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
TEXT: Final = " ".join(OPTIONS)
"""As a variable or a setting has them."""
OF_COMPILER: Final = tuple(f"-J{option}" for option in OPTIONS)
"""As javac has them."""
OF_MAVEN: Final = {"MAVEN_OPTS": TEXT}
"""The variable for Maven."""
OF_SPARK: Final = {"SPARK_SUBMIT_OPTS": TEXT}
"""The variable for sessions and ``spark-submit``, whatever their settings say."""
