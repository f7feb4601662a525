// SPDX-License-Identifier: Apache-2.0
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.utils.Exit;

/**
 * Calls a main method many times in one JVM, each call as if it were a process of its own.
 *
 * Arguments: the class, a file with one call a line (arguments separated by tabs), and the folder that gets N.out and
 * N.err for call N, counted from 0. Standard output: the exit code of each call, one a line.
 */
public final class DumpMany {
    /** Ends a call in place of the process. */
    private static final class Exited extends Error {
        final int code;

        Exited(int code) {
            super(null, null, false, false);
            this.code = code;
        }
    }

    /** A stream that can be handed out once and for all (Scala's Console keeps it), and emptied after each call. */
    private static final class Capture {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream(1 << 16);
        final PrintStream stream = new PrintStream(bytes, false, StandardCharsets.UTF_8);

        void moveTo(Path file) throws Exception {
            stream.flush();
            try (OutputStream out = Files.newOutputStream(file)) {
                bytes.writeTo(out);
            }
            bytes.reset();
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        Capture out = new Capture();
        Capture err = new Capture();
        System.setOut(out.stream);
        System.setErr(err.stream);
        Exit.Procedure exited = (code, message) -> {
            throw new Exited(code);
        };
        Exit.setExitProcedure(exited);
        Exit.setHaltProcedure(exited);
        Method tool = Class.forName(args[0]).getMethod("main", String[].class);
        Path folder = Path.of(args[2]);
        int call = 0;
        for (String line : Files.readAllLines(Path.of(args[1]))) {
            int code = run(tool, line.split("\t"));
            out.moveTo(folder.resolve(call + ".out"));
            err.moveTo(folder.resolve(call + ".err"));
            answers.println(code);
            call++;
        }
        answers.flush();
    }

    private static int run(Method tool, String[] arguments) throws IllegalAccessException {
        try {
            tool.invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Exited) {
                return ((Exited) e.getCause()).code;
            }
            System.err.print("Exception in thread \"main\" ");
            e.getCause().printStackTrace();
            return 1;
        }
    }
}
