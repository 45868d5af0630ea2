package io.deepep.cuda.ibgda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.memory.MappedRegister;
import io.deepep.cuda.memory.VirtualMemory;
import io.deepep.cuda.rdma.DoorbellRegister;
import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.error.DeepEpException;
import io.deepep.spi.Undo;
import java.util.List;

/**
 * What a start does with a GPU and a card, tried with little memory, which is given back. Each
 * component is empty if that works, else why it does not.
 *
 * @param dmaBuf the card reaches memory of the GPU by a dma-buf
 * @param peerMem the same through the module nvidia-peermem
 * @param queues queues lie in memory of the GPU
 * @param doorbells the card's registers are mapped for the GPU
 */
public record IbgdaTrial(String dmaBuf, String peerMem, String queues, String doorbells) {
    private static final long BYTES = 64 << 10;

    /** Tries. */
    public static IbgdaTrial of(CudaContext context, RdmaDevice device) {
        return new IbgdaTrial(
                context.cudaDevice().supportsDmaBuf()
                        ? attempt(() -> tryDmaBuf(context, device))
                        : "the GPU's driver makes none",
                attempt(() -> tryPeerMem(context, device)),
                attempt(() -> tryQueues(context, device)),
                attempt(() -> tryDoorbells(context, device)));
    }

    private static void tryDmaBuf(CudaContext context, RdmaDevice device) {
        try (VirtualMemory memory = memory(context)) {
            long address = memory.address();
            GpuReach.byDmaBuf(
                            context,
                            address,
                            BYTES,
                            fd -> device.registerDmaBuf(address, BYTES, fd, true))
                    .close();
        }
    }

    private static void tryPeerMem(CudaContext context, RdmaDevice device) {
        try (VirtualMemory memory = memory(context)) {
            device.register(memory.address(), BYTES, true).close();
        }
    }

    private static VirtualMemory memory(CudaContext context) {
        return VirtualMemory.allocate(context, BYTES, VirtualMemory.Export.NONE);
    }

    private static void tryQueues(CudaContext context, RdmaDevice device) {
        QueueSlab.register(context, 1, IbgdaOptions.Group.MIN_BLOCKS, true, List.of(device))
                .close();
    }

    /** As many as two queue pairs have, which may be one: a start maps each of hundreds. */
    private static void tryDoorbells(CudaContext context, RdmaDevice device) {
        try (Undo made = new Undo()) {
            for (int i = 0; i < 2; i++) {
                DoorbellRegister register =
                        made.made(DoorbellRegister.allocate(device), DoorbellRegister::close);
                made.made(
                        MappedRegister.of(context, register.address(), register.numBytes()),
                        MappedRegister::close);
            }
        }
    }

    private static String attempt(Runnable step) {
        try {
            step.run();
            return "";
        } catch (DeepEpException failed) {
            return failed.getMessage();
        }
    }
}
