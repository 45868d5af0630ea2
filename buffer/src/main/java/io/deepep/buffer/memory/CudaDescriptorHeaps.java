package io.deepep.buffer.memory;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.VirtualMemory;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.posix.PosixFd;

/**
 * Device memory as file descriptors. The driver counts who has it open, so that ranks close in any
 * order, and neither opening nor closing waits for kernels.
 */
final class CudaDescriptorHeaps extends CudaProcessHeaps {
    private static final int NONE = -1;

    private int descriptor = NONE;

    CudaDescriptorHeaps(
            HeapRanks ranks, CudaContext context, long numBytes, CudaHeaps.Reach reach) {
        super(ranks, context, numBytes, reach, "descriptors");
    }

    @Override
    CudaMemory allocate() {
        return VirtualMemory.allocate(context, numBytes, VirtualMemory.Export.POSIX_FD);
    }

    @Override
    String handle(CudaMemory memory) {
        PosixFd.allowFetching();
        descriptor = ((VirtualMemory) memory).exportPosixFd();
        return ProcessHandle.current().pid() + " " + descriptor;
    }

    @Override
    long accept(int peer, Offer offer) {
        int space = offer.handle().indexOf(' ');
        long pid = Long.parseLong(offer.handle().substring(0, space));
        int theirs = Integer.parseInt(offer.handle().substring(space + 1));
        if (offer.isOfThisProcess()) {
            return accept(peer, theirs, offer);
        }
        int mine = PosixFd.fetch(pid, theirs);
        try {
            return accept(peer, mine, offer);
        } finally {
            PosixFd.close(mine);
        }
    }

    private long accept(int peer, int fd, Offer offer) {
        return openOrReplace(
                peer,
                offer,
                () -> VirtualMemory.importPosixFd(context, fd, numBytes),
                memory -> memory.replaceBy(fd));
    }

    @Override
    void withdraw() {
        if (descriptor != NONE) {
            PosixFd.close(descriptor);
            descriptor = NONE;
        }
    }
}
