package io.deepep.bench.docs;

import static io.deepep.bench.docs.Checkout.ROOT;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.jdi.ArrayReference;
import com.sun.jdi.Bootstrap;
import com.sun.jdi.Location;
import com.sun.jdi.Method;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.StackFrame;
import com.sun.jdi.StringReference;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.VMDisconnectedException;
import com.sun.jdi.Value;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.connect.LaunchingConnector;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.ClassPrepareEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.event.VMDisconnectEvent;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.EventRequest;
import io.deepep.spi.posix.SharedMemory;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The metadata for native images names all that the host backend asks of Java at run time. As
 * GraalVM's agent would, a debugger watches the README's example, and a program that uses shared
 * memory: calls of C functions, reflection by name, resources. No image is built: the tool is no
 * package of a registry that builds use.
 */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("checkout")
class NativeImageTest {
    private static final Pattern EXAMPLE =
            Pattern.compile("```java\\n(.*?class Example .*?)```", Pattern.DOTALL);
    private static final Map<String, String> TYPES =
            Map.of("jint", "i4", "jlong", "j8", "void*", "a8", "void", "v");

    /** Frames above a watched method in which its caller is looked for. */
    private static final int DEPTH = 12;

    /** What a program asked for, as {@code function (j8j8)a8} or {@code class NAME}. */
    private final Set<String> asked = Collections.synchronizedSet(new TreeSet<>());

    private final Set<ThreadReference> questioned = ConcurrentHashMap.newKeySet();

    @Test
    void theReadmesExampleAsksForWhatTheHostBackendNames(@TempDir Path folder) throws Exception {
        Matcher example = EXAMPLE.matcher(Files.readString(ROOT.resolve("README.md")));
        assertThat(example.find()).isTrue();
        Path source = Files.writeString(folder.resolve("Example.java"), example.group(1));
        String classes = System.getProperty("java.class.path");
        int compiled =
                ToolProvider.getSystemJavaCompiler()
                        .run(null, null, null, "-cp", classes, source.toString());
        assertThat(compiled).isZero();
        assertThat(watch("Example", classes + File.pathSeparator + folder))
                .contains("token 0 came back as 1.0");
        assertThat(asked).isEqualTo(named("host", "deepep-host"));
    }

    @Test
    void sharedMemoryAsksForWhatTheApiNames() throws Exception {
        assertThat(watch(Shared.class.getName(), System.getProperty("java.class.path")))
                .contains("4096 bytes");
        assertThat(asked).isEqualTo(named("deepep-api", "deepep-api"));
    }

    /** Loads all functions of the C library that ranks in processes use. */
    static final class Shared {
        private Shared() {}

        public static void main(String[] arguments) {
            try (SharedMemory memory = SharedMemory.create("native-image-test", 4096)) {
                System.out.println("4096 bytes by descriptor " + memory.fd());
            }
        }
    }

    /** What a module's metadata names, in the words of {@link #asked}. */
    private static Set<String> named(String module, String artifact) throws IOException {
        Path file =
                ROOT.resolve(module)
                        .resolve("src/main/resources/META-INF/native-image/io.deepep")
                        .resolve(artifact)
                        .resolve("reachability-metadata.json");
        JsonNode metadata = new ObjectMapper().readTree(file.toFile());
        assertThat(metadata.properties()).hasSize(1);
        Set<String> named = new TreeSet<>();
        for (JsonNode call : metadata.at("/foreign/downcalls")) {
            StringBuilder text = new StringBuilder("function (");
            call.get("parameterTypes").forEach(type -> text.append(TYPES.get(type.asText())));
            text.append(')').append(TYPES.get(call.get("returnType").asText()));
            JsonNode options = call.path("options");
            if (options.path("captureCallState").asBoolean()) {
                text.append(" errno");
            }
            if (options.has("firstVariadicArg")) {
                text.append(" variadic from ").append(options.get("firstVariadicArg").asInt());
            }
            named.add(text.toString());
        }
        return named;
    }

    /** Runs a program under the debugger; what it printed. */
    private String watch(String program, String classPath) throws Exception {
        LaunchingConnector connector = Bootstrap.virtualMachineManager().defaultConnector();
        Map<String, Connector.Argument> arguments = connector.defaultArguments();
        arguments.get("main").setValue(program);
        arguments
                .get("options")
                .setValue("--enable-native-access=ALL-UNNAMED -cp \"%s\"".formatted(classPath));
        VirtualMachine machine = connector.launch(arguments);
        List<String> output = Collections.synchronizedList(new ArrayList<>());
        Thread reader =
                Thread.ofPlatform().start(() -> output.add(read(machine.process().inputReader())));
        Thread errors =
                Thread.ofPlatform().start(() -> output.add(read(machine.process().errorReader())));
        stopAt(machine, "jdk.internal.foreign.abi.AbstractLinker", "downcallHandle0");
        stopAt(machine, "java.lang.Class", "forName");
        stopAt(machine, "java.lang.ClassLoader", "getResource");
        try (ExecutorService worker = Executors.newSingleThreadExecutor()) {
            while (handle(machine, worker)) {}
        } catch (VMDisconnectedException ended) {
            // as it should
        }
        reader.join();
        errors.join();
        return String.join("\n", output);
    }

    private static String read(BufferedReader stream) {
        return String.join("\n", stream.lines().toList());
    }

    private static void stopAt(VirtualMachine machine, String type, String method) {
        List<ReferenceType> loaded = machine.classesByName(type);
        if (loaded.isEmpty()) {
            var request = machine.eventRequestManager().createClassPrepareRequest();
            request.addClassFilter(type);
            request.putProperty("method", method);
            request.enable();
        }
        loaded.forEach(each -> stopAt(machine, each, method));
    }

    private static void stopAt(VirtualMachine machine, ReferenceType type, String method) {
        for (Method each : type.methodsByName(method)) {
            Location start = each.location();
            BreakpointRequest request =
                    machine.eventRequestManager().createBreakpointRequest(start);
            // Only its own thread: others go on while it is asked.
            request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
            request.enable();
        }
    }

    /** Handles what happened; whether the program still runs. */
    private boolean handle(VirtualMachine machine, ExecutorService worker) throws Exception {
        EventSet events = machine.eventQueue().remove();
        for (Event event : events) {
            if (event instanceof BreakpointEvent stop && !questioned.contains(stop.thread())) {
                // On another thread: what the program is asked may itself come to a breakpoint.
                worker.execute(() -> note(stop, events));
                return true;
            }
            if (event instanceof ClassPrepareEvent prepared) {
                String method = (String) event.request().getProperty("method");
                stopAt(machine, prepared.referenceType(), method);
            } else if (event instanceof VMDisconnectEvent) {
                return false;
            }
        }
        events.resume();
        return true;
    }

    private void note(BreakpointEvent stop, EventSet events) {
        questioned.add(stop.thread());
        try {
            note(stop);
        } catch (Exception failure) {
            asked.add("not understood: " + failure);
        } finally {
            questioned.remove(stop.thread());
            events.resume();
        }
    }

    private void note(BreakpointEvent stop) throws Exception {
        ThreadReference thread = stop.thread();
        String method = stop.location().method().name();
        List<Value> arguments = thread.frame(0).getArgumentValues();
        if (!isOurs(thread)) {
            return;
        }
        if (method.equals("downcallHandle0")) {
            String function = text(thread, arguments.getFirst());
            List<String> options = new ArrayList<>();
            for (Value each : ((ArrayReference) arguments.get(1)).getValues()) {
                options.add(text(thread, each));
            }
            asked.add("function " + function + options(options));
        } else {
            asked.add(method + " " + text(thread, arguments.getFirst()));
        }
    }

    private static String options(List<String> options) {
        String all = options.toString();
        Matcher variadic = Pattern.compile("FirstVariadicArg\\[index=(\\d+)]").matcher(all);
        return (all.contains("CaptureCallState") ? " errno" : "")
                + (variadic.find() ? " variadic from " + variadic.group(1) : "");
    }

    /**
     * Whether the library asks, and not what the JDK does for services, method handles and events.
     */
    private static boolean isOurs(ThreadReference thread) throws Exception {
        List<StackFrame> frames = thread.frames(0, Math.min(DEPTH, thread.frameCount()));
        for (StackFrame frame : frames) {
            String type = frame.location().declaringType().name();
            if (type.equals("java.util.ServiceLoader")
                    || type.startsWith("java.lang.invoke")
                    || type.startsWith("jdk.jfr.")) {
                return false;
            }
            if (type.startsWith("io.deepep.")) {
                return true;
            }
        }
        return false;
    }

    private static String text(ThreadReference thread, Value value) throws Exception {
        if (value == null) {
            return "null";
        }
        if (value instanceof StringReference string) {
            return string.value();
        }
        ObjectReference object = (ObjectReference) value;
        Method method =
                object.referenceType().methodsByName("toString", "()Ljava/lang/String;").getFirst();
        Value result =
                object.invokeMethod(
                        thread, method, List.of(), ObjectReference.INVOKE_SINGLE_THREADED);
        return ((StringReference) result).value();
    }
}
