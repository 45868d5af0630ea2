package io.deepep.cuda.driver;

import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * One function of the driver. Held in {@code static final} fields: a record's fields are constants
 * to the compiler, so each {@code call} is a direct native call.
 *
 * <p>The overloads are the shapes of the functions bound in this package: handles and device
 * pointers are {@code long}, host pointers and structs {@link MemorySegment}. That makes this file
 * longer than most, and every binding one line.
 *
 * @param name the exported symbol
 * @param tolerated a status besides success that {@code call} returns instead of throwing
 */
public record CuCall(String name, MethodHandle handle, int tolerated) {
    private static final Linker.Option[] NO_OPTIONS = {};
    private static final Linker.Option[] CRITICAL = {Linker.Option.critical(false)};

    public static CuCall of(String name, MemoryLayout... parameters) {
        return new CuCall(name, CuLibrary.bind(name, NO_OPTIONS, parameters), CuError.SUCCESS);
    }

    /**
     * For functions that return within nanoseconds: no thread state transition, so a garbage
     * collection waits for them.
     */
    public static CuCall critical(String name, MemoryLayout... parameters) {
        return new CuCall(name, CuLibrary.bind(name, CRITICAL, parameters), CuError.SUCCESS);
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

    public int call() {
        try {
            return check((int) handle.invokeExact());
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(int a) {
        try {
            return check((int) handle.invokeExact(a));
        } catch (Throwable t) {
            throw rethrow(t);
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

    public int call(long a, int b) {
        try {
            return check((int) handle.invokeExact(a, b));
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

    public int call(MemorySegment a, int b) {
        try {
            return check((int) handle.invokeExact(a, b));
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

    public int call(MemorySegment a, MemorySegment b) {
        try {
            return check((int) handle.invokeExact(a, b));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, byte b, long c) {
        try {
            return check((int) handle.invokeExact(a, b, c));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, int b, int c) {
        try {
            return check((int) handle.invokeExact(a, b, c));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, long b, int c) {
        try {
            return check((int) handle.invokeExact(a, b, c));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, long b, MemorySegment c) {
        try {
            return check((int) handle.invokeExact(a, b, c));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, MemorySegment b, long c) {
        try {
            return check((int) handle.invokeExact(a, b, c));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(MemorySegment a, int b, int c) {
        try {
            return check((int) handle.invokeExact(a, b, c));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(MemorySegment a, int b, long c) {
        try {
            return check((int) handle.invokeExact(a, b, c));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(MemorySegment a, long b, int c) {
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

    public int call(MemorySegment a, long b, MemorySegment c) {
        try {
            return check((int) handle.invokeExact(a, b, c));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(MemorySegment a, MemorySegment b, int c) {
        try {
            return check((int) handle.invokeExact(a, b, c));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(MemorySegment a, MemorySegment b, long c) {
        try {
            return check((int) handle.invokeExact(a, b, c));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, byte b, long c, long d) {
        try {
            return check((int) handle.invokeExact(a, b, c, d));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, int b, long c, long d) {
        try {
            return check((int) handle.invokeExact(a, b, c, d));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, long b, int c, int d) {
        try {
            return check((int) handle.invokeExact(a, b, c, d));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, long b, long c, int d) {
        try {
            return check((int) handle.invokeExact(a, b, c, d));
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

    public int call(long a, long b, MemorySegment c, long d) {
        try {
            return check((int) handle.invokeExact(a, b, c, d));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(MemorySegment a, long b, int c, long d) {
        try {
            return check((int) handle.invokeExact(a, b, c, d));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(MemorySegment a, long b, MemorySegment c, long d) {
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

    public int call(MemorySegment a, MemorySegment b, long c, MemorySegment d) {
        try {
            return check((int) handle.invokeExact(a, b, c, d));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(long a, long b, long c, long d, long e) {
        try {
            return check((int) handle.invokeExact(a, b, c, d, e));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(MemorySegment a, long b, long c, long d, long e) {
        try {
            return check((int) handle.invokeExact(a, b, c, d, e));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }

    public int call(MemorySegment a, MemorySegment b, int c, MemorySegment d, MemorySegment e) {
        try {
            return check((int) handle.invokeExact(a, b, c, d, e));
        } catch (Throwable t) {
            throw rethrow(t);
        }
    }
}
