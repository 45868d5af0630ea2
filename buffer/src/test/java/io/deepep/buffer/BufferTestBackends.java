package io.deepep.buffer;

import io.deepep.Network;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import io.deepep.testkit.TestNetworks;
import java.util.List;

/** The backends that {@link io.deepep.Buffer} has. */
public final class BufferTestBackends implements TestBackends {
    /** Ranks on the CPU. */
    static final TestBackend HOST = new HostTestBackend();

    /** GPUs of one node. */
    static final TestBackend CUDA = new CudaTestBackend("cuda", false, Network.auto());

    /** Several nodes on one host: peers' memory in place of a network. */
    static final TestBackend CUDA_VIRTUAL_NODES =
            new CudaTestBackend("cuda-virtual-nodes", true, Network.auto());

    /** Several nodes on one host over NVSHMEM; see {@link TestNetworks#nvshmem}. */
    static final TestBackend CUDA_NVSHMEM =
            new CudaTestBackend("cuda-nvshmem", true, TestNetworks.nvshmem());

    /** Several nodes whose GPUs drive network cards themselves. */
    static final TestBackend CUDA_IBGDA = new CudaTestBackend("cuda-ibgda", true, Network.ibgda());

    @Override
    public List<TestBackend> all() {
        return List.of(HOST, CUDA, CUDA_VIRTUAL_NODES, CUDA_NVSHMEM, CUDA_IBGDA);
    }
}
