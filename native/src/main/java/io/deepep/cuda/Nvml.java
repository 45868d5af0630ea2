package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.cuda.topology.PciAddress;
import io.deepep.error.DeepEpUnavailableException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** The driver's management library, while something is asked of it. */
final class Nvml {
    static final int SUCCESS = 0;

    private static final String LIBRARY = "libnvidia-ml.so.1";
    private static final int MAX_LINKS = 36;
    private static final int ENABLED = 1;

    private final NativeLibrary library;
    private final Arena arena;
    private final Map<String, MethodHandle> functions = new HashMap<>();

    private Nvml(NativeLibrary library, Arena arena) {
        this.library = library;
        this.arena = arena;
    }

    /**
     * Starts the library of this machine, asks, and ends it.
     *
     * @return empty where it is missing or does not start, has not all functions that are asked
     *     for, or the answer is empty
     */
    static <T> Optional<T> ask(Function<Nvml, Optional<T>> question) {
        return NativeLibrary.find(LIBRARY).flatMap(library -> ask(library, question));
    }

    static <T> Optional<T> ask(NativeLibrary library, Function<Nvml, Optional<T>> question) {
        try (Arena arena = Arena.ofConfined()) {
            Nvml nvml = new Nvml(library, arena);
            if (!nvml.answers("nvmlInit_v2")) {
                return Optional.empty();
            }
            try {
                return question.apply(nvml);
            } finally {
                nvml.answers("nvmlShutdown");
            }
        } catch (DeepEpUnavailableException older) {
            return Optional.empty();
        }
    }

    /** Memory that lasts while the library is asked. */
    Arena arena() {
        return arena;
    }

    /**
     * Calls a function that takes pointers and {@code int}s and returns a status.
     *
     * @return whether it succeeds
     * @throws DeepEpUnavailableException if the library is too old to have it
     */
    boolean answers(String function, Object... arguments) {
        MethodHandle handle = functions.computeIfAbsent(function, name -> bind(name, arguments));
        return (int) NativeLibrary.call(handle, arguments) == SUCCESS;
    }

    private MethodHandle bind(String name, Object... arguments) {
        MemoryLayout[] parameters =
                Stream.of(arguments)
                        .map(argument -> argument instanceof MemorySegment ? ADDRESS : JAVA_INT)
                        .toArray(MemoryLayout[]::new);
        return library.bind(name, FunctionDescriptor.of(JAVA_INT, parameters));
    }

    /** The library's handle of a GPU; empty for one that it does not know. */
    Optional<MemorySegment> device(PciAddress address) {
        MemorySegment out = arena.allocate(ADDRESS);
        MemorySegment name = arena.allocateFrom(address.toString());
        return answers("nvmlDeviceGetHandleByPciBusId_v2", name, out)
                ? Optional.of(out.get(ADDRESS, 0))
                : Optional.empty();
    }

    /** The numbers of a GPU's NVLinks that are up. */
    List<Integer> activeLinks(MemorySegment device) {
        MemorySegment state = arena.allocate(JAVA_INT);
        return IntStream.range(0, MAX_LINKS)
                .filter(
                        link ->
                                answers("nvmlDeviceGetNvLinkState", device, link, state)
                                        && state.get(JAVA_INT, 0) == ENABLED)
                .boxed()
                .toList();
    }
}
