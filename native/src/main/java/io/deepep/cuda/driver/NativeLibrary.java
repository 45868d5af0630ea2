package io.deepep.cuda.driver;

import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.posix.NativeAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Optional;

/** A shared library that a machine may not have. Stays loaded as long as the process lives. */
public final class NativeLibrary {
    private final String name;
    private final SymbolLookup symbols;

    private NativeLibrary(String name, SymbolLookup symbols) {
        this.name = name;
        this.symbols = symbols;
    }

    /**
     * Loads a library.
     *
     * @param name a file, or what the dynamic linker searches for, for example {@code libm.so.6}
     * @return empty if there is none, or it cannot be loaded
     * @throws DeepEpUnavailableException if native access is denied
     */
    public static Optional<NativeLibrary> find(String name) {
        try {
            return Optional.of(
                    new NativeLibrary(name, SymbolLookup.libraryLookup(name, Arena.global())));
        } catch (IllegalArgumentException missing) {
            return Optional.empty();
        } catch (IllegalCallerException refused) {
            throw denied(refused);
        }
    }

    static DeepEpUnavailableException denied(IllegalCallerException refused) {
        return new DeepEpUnavailableException(
                "native access is denied to " + NativeLibrary.class.getModule(),
                "start Java with " + NativeAccess.OPTION,
                refused);
    }

    /**
     * The same where it is needed.
     *
     * @throws DeepEpUnavailableException with the cure, if there is none or it cannot be loaded
     */
    public static NativeLibrary require(String name, String cure) {
        return find(name)
                .orElseThrow(
                        () -> new DeepEpUnavailableException(name + " cannot be loaded", cure));
    }

    /** Calls a function that need not be fast. */
    public static Object call(MethodHandle function, Object... arguments) {
        try {
            return function.invokeWithArguments(arguments);
        } catch (Throwable t) {
            throw CuCall.rethrow(t);
        }
    }

    /**
     * Binds a function.
     *
     * @throws DeepEpUnavailableException if the library has none of that name
     */
    public MethodHandle bind(
            String function, FunctionDescriptor descriptor, Linker.Option... options) {
        return symbols.find(function)
                .map(at -> Linker.nativeLinker().downcallHandle(at, descriptor, options))
                .orElseThrow(
                        () ->
                                new DeepEpUnavailableException(
                                        name + " has no function " + function,
                                        "install a version of the library that has it"));
    }
}
