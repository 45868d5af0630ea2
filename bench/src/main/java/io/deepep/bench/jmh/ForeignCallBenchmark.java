package io.deepep.bench.jmh;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/**
 * What it costs to call C from Java, with a function that does next to nothing: the driver's
 * functions are bound in the same two ways.
 */
@State(Scope.Thread)
public class ForeignCallBenchmark extends CallBenchmark {
    private static final MethodHandle ABS = bind();
    private static final MethodHandle CRITICAL_ABS = bind(Linker.Option.critical(false));

    private int value = -7;

    @SuppressWarnings("restricted") // the function is known to take and give an int
    private static MethodHandle bind(Linker.Option... options) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(
                linker.defaultLookup().findOrThrow("abs"),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT),
                options);
    }

    /** A call during which the garbage collector may run. */
    @Benchmark
    public int downcall() throws Throwable {
        return (int) ABS.invokeExact(value);
    }

    /** A call that the garbage collector waits for. */
    @Benchmark
    public int criticalDowncall() throws Throwable {
        return (int) CRITICAL_ABS.invokeExact(value);
    }
}
