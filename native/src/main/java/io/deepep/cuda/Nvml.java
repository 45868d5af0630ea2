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
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.IntStream;

/** The driver's management library, while something is asked of it. */
final class Nvml {
    static final String LIBRARY = "libnvidia-ml.so.1";
    static final int SUCCESS = 0;

    private static final int MAX_LINKS = 36;
    private static final int ENABLED = 1;

    private final NativeLibrary library;
    private final Arena arena;
    private final MethodHandle deviceAt;
    private MethodHandle linkState;

    private Nvml(NativeLibrary library, Arena arena) {
        this.library = library;
        this.arena = arena;
        deviceAt = bind("nvmlDeviceGetHandleByPciBusId_v2", ADDRESS, ADDRESS);
    }

    /**
     * Starts the library, asks, and ends it.
     *
     * @return empty where it does not start, or has not all functions that are asked for
     */
    static <T> Optional<T> ask(NativeLibrary library, Function<Nvml, T> question) {
        try (Arena arena = Arena.ofConfined()) {
            Nvml nvml = new Nvml(library, arena);
            MethodHandle init = nvml.bind("nvmlInit_v2");
            MethodHandle shutdown = nvml.bind("nvmlShutdown");
            if (nvml.status(init) != SUCCESS) {
                return Optional.empty();
            }
            try {
                return Optional.of(question.apply(nvml));
            } finally {
                nvml.status(shutdown);
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
     * A function that returns a status.
     *
     * @throws DeepEpUnavailableException if the library is too old to have it
     */
    MethodHandle bind(String name, MemoryLayout... parameters) {
        return library.bind(name, FunctionDescriptor.of(JAVA_INT, parameters));
    }

    int status(MethodHandle function, Object... arguments) {
        return (int) NativeLibrary.call(function, arguments);
    }

    /** The library's handle of a GPU; NULL for one that it does not know. */
    MemorySegment device(PciAddress address) {
        MemorySegment out = arena.allocate(ADDRESS);
        MemorySegment name = arena.allocateFrom(address.toString());
        boolean known = status(deviceAt, name, out) == SUCCESS;
        return known ? out.get(ADDRESS, 0) : MemorySegment.NULL;
    }

    /** The numbers of a GPU's NVLinks that are up. */
    List<Integer> activeLinks(MemorySegment device) {
        if (linkState == null) {
            linkState = bind("nvmlDeviceGetNvLinkState", ADDRESS, JAVA_INT, ADDRESS);
        }
        MemorySegment state = arena.allocate(JAVA_INT);
        return IntStream.range(0, MAX_LINKS)
                .filter(
                        link ->
                                status(linkState, device, link, state) == SUCCESS
                                        && state.get(JAVA_INT, 0) == ENABLED)
                .boxed()
                .toList();
    }
}
