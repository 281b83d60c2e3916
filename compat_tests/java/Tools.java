import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command line tools, one after the other in one JVM: a line of JSON names a class, its
 * arguments and its standard input; the answer holds what it printed and its exit code.
 */
public final class Tools {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    /** What the running tool wants to do when the JVM ends: a console producer sends the rest. */
    private static final List<Runnable> HOOKS = new ArrayList<>();

    /** The exit code that the running tool asked for first; what it prints later is not its own. */
    private static Integer exitCode;

    private Tools() {}

    /** Thrown where a tool wants to end the JVM. */
    private static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1;

        Ended() {
            super("the tool has ended", null, false, false);
        }
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream answers = System.out;
        BufferedReader questions =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> end(code));
        Exit.setHaltProcedure((code, message) -> end(code));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            answers.println(MAPPER.writeValueAsString(run(MAPPER.readTree(line))));
            answers.flush();
        }
    }

    private static void end(int code) {
        if (exitCode == null) {
            exitCode = code;
            System.out.flush();
            System.err.flush();
            PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream());
            System.setOut(nowhere);
            System.setErr(nowhere);
        }
        throw new Ended();
    }

    private static ObjectNode run(JsonNode question) {
        List<String> arguments = new ArrayList<>();
        question.get("arguments").forEach(argument -> arguments.add(argument.asText()));
        byte[] input = question.get("input").asText().getBytes(StandardCharsets.UTF_8);
        InputStream in = System.in;
        PrintStream out = System.out;
        PrintStream err = System.err;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        ByteArrayOutputStream complained = new ByteArrayOutputStream();
        System.setIn(new ByteArrayInputStream(input));
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(complained, true, StandardCharsets.UTF_8));
        exitCode = null;
        int code = 0;
        try {
            call(question.get("tool").asText(), arguments.toArray(new String[0]));
        } catch (Ended ended) {
            // Its code was kept when it ended.
        } catch (Throwable error) {
            code = 1;
            System.err.println(error);
        } finally {
            HOOKS.forEach(Runnable::run);
            HOOKS.clear();
            System.out.flush();
            System.err.flush();
            System.setIn(in);
            System.setOut(out);
            System.setErr(err);
        }
        return MAPPER.createObjectNode()
                .put("code", exitCode == null ? code : exitCode)
                .put("out", printed.toString(StandardCharsets.UTF_8))
                .put("err", complained.toString(StandardCharsets.UTF_8));
    }

    private static void call(String tool, String[] arguments) throws Throwable {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }
}
