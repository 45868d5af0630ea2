package io.deepep.cuda.rdma;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.cuda.driver.CuStructs;
import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.error.NativeCallException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;

/**
 * A function of rdma-core's libraries, and what it says when it fails: by {@code errno}, or by
 * returning it. Called while buffers open and close, never while they work.
 */
final class RdmaFunction {
    private static final Linker.Option WITH_ERRNO = Linker.Option.captureCallState("errno");
    private static final StructLayout CALL_STATE = Linker.Option.captureStateLayout();
    private static final long ERRNO_AT = CuStructs.offset(CALL_STATE, "errno");
    private static final MethodHandle STRERROR =
            Linker.nativeLinker()
                    .downcallHandle(
                            Linker.nativeLinker().defaultLookup().findOrThrow("strerror"),
                            FunctionDescriptor.of(ADDRESS, JAVA_INT));

    private final String name;
    private final MethodHandle handle;

    private RdmaFunction(NativeLibrary library, String name, FunctionDescriptor descriptor) {
        this.name = name;
        this.handle = library.bind(name, descriptor, WITH_ERRNO);
    }

    /** A function that returns a status: 0, or a number of {@code errno.h}, or -1. */
    static RdmaFunction status(NativeLibrary library, String name, MemoryLayout... parameters) {
        return new RdmaFunction(library, name, FunctionDescriptor.of(JAVA_INT, parameters));
    }

    /** A function that returns an object, or null. */
    static RdmaFunction object(NativeLibrary library, String name, MemoryLayout... parameters) {
        return new RdmaFunction(library, name, FunctionDescriptor.of(ADDRESS, parameters));
    }

    /** A function that cannot fail. */
    static RdmaFunction nothing(NativeLibrary library, String name, MemoryLayout... parameters) {
        return new RdmaFunction(library, name, FunctionDescriptor.ofVoid(parameters));
    }

    /**
     * Calls a function that returns a status.
     *
     * @param where the device or object that it concerns, for the message
     * @throws NativeCallException if the status is not 0
     */
    void check(String where, Object... arguments) {
        int[] errno = new int[1];
        int status = (int) invoke(errno, arguments);
        if (status != 0) {
            throw failure(status > 0 ? status : errno[0], where);
        }
    }

    /**
     * Calls a function that returns an object.
     *
     * @throws NativeCallException if it returns null
     */
    MemorySegment make(String where, Object... arguments) {
        int[] errno = new int[1];
        MemorySegment object = (MemorySegment) invoke(errno, arguments);
        if (object.address() == 0) {
            throw failure(errno[0], where);
        }
        return object.reinterpret(Long.MAX_VALUE);
    }

    /** Calls a function whose answer does not matter. */
    void call(Object... arguments) {
        invoke(new int[1], arguments);
    }

    private Object invoke(int[] errno, Object... arguments) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(CALL_STATE);
            List<Object> all = new ArrayList<>(List.of(state));
            all.addAll(List.of(arguments));
            Object result = NativeLibrary.call(handle, all.toArray());
            errno[0] = state.get(ValueLayout.JAVA_INT, ERRNO_AT);
            return result;
        }
    }

    private NativeCallException failure(int code, String where) {
        return new NativeCallException(name, code, describe(code), where, false);
    }

    private static String describe(int code) {
        MemorySegment text = (MemorySegment) NativeLibrary.call(STRERROR, code);
        return text.reinterpret(Integer.MAX_VALUE).getString(0);
    }
}
