package io.deepep.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.stream.Stream;

/**
 * One function of the driver. Held in {@code static final} fields: a record's fields are constants
 * to the compiler, so each {@code call} is a direct native call.
 *
 * <p>The overloads of {@code call} are the shapes of functions that working buffers call: handles,
 * device pointers and numbers of any width are {@code long}, host pointers and structs {@link
 * MemorySegment}. Others go by {@link #invoke} and {@link #ask}.
 *
 * @param name the exported symbol
 * @param tolerated a status besides success that {@code call} returns instead of throwing
 */
public record CuCall(String name, MethodHandle handle, int tolerated) {
    private static final Linker.Option[] NO_OPTIONS = {};
    private static final Linker.Option[] CRITICAL = {Linker.Option.critical(false)};

    public static CuCall of(String name, MemoryLayout... parameters) {
        return of(name, NO_OPTIONS, parameters);
    }

    /**
     * For functions that return within nanoseconds: no thread state transition, so a garbage
     * collection waits for them.
     */
    public static CuCall critical(String name, MemoryLayout... parameters) {
        return of(name, CRITICAL, parameters);
    }

    private static CuCall of(String name, Linker.Option[] options, MemoryLayout... parameters) {
        MethodHandle exact = CuLibrary.bind(name, options, parameters);
        Class<?>[] wide =
                exact.type().parameterList().stream()
                        .map(type -> type.isPrimitive() ? long.class : type)
                        .toArray(Class<?>[]::new);
        // The low bits of a long are the narrower number, signed or not.
        return new CuCall(
                name,
                MethodHandles.explicitCastArguments(exact, MethodType.methodType(int.class, wide)),
                CuError.SUCCESS);
    }

    /** The same function, whose status {@code code} is an answer rather than an error. */
    public CuCall tolerating(int code) {
        return new CuCall(name, handle, code);
    }

    private int check(int status) {
        if (status != CuError.SUCCESS && status != tolerated) {
            throw CuError.failure(name, status);
        }
        return status;
    }

    public static RuntimeException rethrow(Throwable t) {
        if (t instanceof RuntimeException e) {
            throw e;
        }
        if (t instanceof Error e) {
            throw e;
        }
        throw new AssertionError("a downcall threw a checked exception", t);
    }

    /**
     * Calls a function of any shape. Makes garbage: for what happens while buffers open and close.
     */
    public int invoke(Object... arguments) {
        return check((int) NativeLibrary.call(handle, arguments));
    }

    /** The same of a function whose first argument is where it writes a number: that number. */
    public long ask(Object... arguments) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment answer = arena.allocate(JAVA_LONG);
            invoke(Stream.concat(Stream.of(answer), Stream.of(arguments)).toArray());
            return answer.get(JAVA_LONG, 0);
        }
    }

    public int call(long a) {
        try {
            return check((int) handle.invokeExact(a));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(MemorySegment a) {
        try {
            return check((int) handle.invokeExact(a));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, long b) {
        try {
            return check((int) handle.invokeExact(a, b));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, MemorySegment b) {
        try {
            return check((int) handle.invokeExact(a, b));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, MemorySegment b, MemorySegment c) {
        try {
            return check((int) handle.invokeExact(a, b, c));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(MemorySegment a, long b) {
        try {
            return check((int) handle.invokeExact(a, b));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, long b, long c) {
        try {
            return check((int) handle.invokeExact(a, b, c));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(MemorySegment a, long b, long c) {
        try {
            return check((int) handle.invokeExact(a, b, c));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, long b, long c, long d) {
        try {
            return check((int) handle.invokeExact(a, b, c, d));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(MemorySegment a, long b, MemorySegment c, MemorySegment d) {
        try {
            return check((int) handle.invokeExact(a, b, c, d));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }
}
