package io.deepep.testkit.conformance;

import io.deepep.Device;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;

/**
 * A call that must be refused before anything is started.
 *
 * @param name of the case
 * @param type what it must throw
 * @param mentions what the message must contain
 * @param call the call
 * @param <R> one rank, with what it needs for the call
 */
record Misuse<R>(String name, Class<? extends Throwable> type, String mentions, Call<R> call) {
    /** A call that is expected to throw. */
    @FunctionalInterface
    interface Call<R> {
        void make(R rank);
    }

    /** Arguments that do not fit. */
    static <R> Misuse<R> argument(String name, String mentions, Call<R> call) {
        return new Misuse<>(name, IllegalArgumentException.class, mentions, call);
    }

    /** An argument that is missing. */
    static <R> Misuse<R> missing(String name, String mentions, Call<R> call) {
        return new Misuse<>(name, NullPointerException.class, mentions, call);
    }

    /** A tensor of the same shape that lies elsewhere. Nothing may read it. */
    static Tensor elsewhere(RankContext context, Tensor tensor) {
        if (context.backend().kind() == Device.Kind.CUDA) {
            return HostTensors.allocate(tensor.dtype(), tensor.shape());
        }
        long bytes = tensor.capacityBytes();
        return Tensor.onDevice(
                Device.cuda(0), 1 << 20, bytes, tensor.dtype(), tensor.shape(), tensor.strides());
    }

    @Override
    public String toString() {
        return name;
    }
}
