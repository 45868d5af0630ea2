package io.deepep.doctor;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.PeerAccess;
import io.deepep.cuda.memory.CudaMemory;
import java.util.List;

/** Speed of copies between GPUs, one pair at a time. */
final class PeerBandwidth {
    private static final long NUM_BYTES = 64L << 20;
    private static final int NUM_WARMUPS = 2;
    private static final int NUM_COPIES = 10;
    private static final double BYTES_PER_MICRO_TO_GIGABYTES_PER_SECOND = 1e-3;

    private PeerBandwidth() {}

    /** GB/s from every GPU to every other; to itself, counting what is written. */
    static List<List<Double>> measure(List<CudaDevice> devices) {
        return devices.stream()
                .map(from -> devices.stream().map(to -> measure(from, to)).toList())
                .toList();
    }

    private static double measure(CudaDevice from, CudaDevice to) {
        try (CudaContext target = CudaContext.retain(to);
                CudaContext source = CudaContext.retain(from);
                CudaMemory read = CudaMemory.allocate(source, NUM_BYTES);
                CudaMemory written = CudaMemory.allocate(target, NUM_BYTES);
                CudaStream stream = CudaStream.create(source);
                CudaEvent start = CudaEvent.createTiming(source);
                CudaEvent end = CudaEvent.createTiming(source)) {
            if (PeerAccess.isPossible(from, to)) {
                PeerAccess.enable(source, target);
            }
            copy(stream, written, read, NUM_WARMUPS);
            stream.record(start);
            copy(stream, written, read, NUM_COPIES);
            stream.record(end);
            stream.synchronize();
            double micros = end.elapsedMicros(start);
            return NUM_COPIES * NUM_BYTES / micros * BYTES_PER_MICRO_TO_GIGABYTES_PER_SECOND;
        }
    }

    private static void copy(CudaStream stream, CudaMemory target, CudaMemory source, int times) {
        for (int i = 0; i < times; i++) {
            stream.copy(target.address(), source.address(), NUM_BYTES);
        }
    }
}
