package io.deepep.cuda.driver;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;

/**
 * The environment variables that native libraries of this process see. {@link System#getenv} shows
 * a copy from before; what is set here is not in it, nor seen by libraries that have read their
 * variables already.
 */
public final class NativeEnvironment {
    private NativeEnvironment() {}

    /**
     * Sets a variable. Not safe while native threads read the environment: call it before the
     * library that reads the variable starts.
     *
     * @throws IllegalArgumentException if the name is empty or has a {@code =}
     * @throws IllegalCallerException if native access is denied
     */
    public static synchronized void set(String name, String value) {
        Linker linker = Linker.nativeLinker();
        MethodHandle setenv =
                linker.downcallHandle(
                        linker.defaultLookup().findOrThrow("setenv"),
                        FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));
        try (Arena arena = Arena.ofConfined()) {
            Object status =
                    NativeLibrary.call(
                            setenv, arena.allocateFrom(name), arena.allocateFrom(value), 1);
            if (!status.equals(0)) {
                throw new IllegalArgumentException(
                        "cannot set the environment variable \"" + name + "\"");
            }
        }
    }
}
