package io.deepep.buffer.memory;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.VirtualMemory;
import io.deepep.spi.HeapRanks;
import java.util.HexFormat;

/**
 * Device memory as fabric handles, for ranks of an NVLink domain that has several hosts. The driver
 * counts who has it open, as with descriptors, and a handle is valid as long as the memory is.
 */
final class CudaFabricHeaps extends CudaProcessHeaps {
    CudaFabricHeaps(HeapRanks ranks, CudaContext context, long numBytes, CudaHeaps.Reach reach) {
        super(ranks, context, numBytes, reach, "fabric handles");
    }

    @Override
    CudaMemory allocate() {
        return VirtualMemory.allocate(context, numBytes, VirtualMemory.Export.FABRIC);
    }

    @Override
    String handle(CudaMemory memory) {
        return HexFormat.of().formatHex(((VirtualMemory) memory).exportFabric());
    }

    @Override
    long accept(int peer, Offer offer) {
        byte[] handle = HexFormat.of().parseHex(offer.handle());
        return openOrReplace(
                peer,
                offer,
                () -> VirtualMemory.importFabric(context, handle, numBytes),
                memory -> memory.replaceBy(handle));
    }
}
