package io.deepep.normal.cuda.kernels;

import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.DeviceCode;
import io.deepep.cuda.NetworkLibrary;
import java.net.URL;

/** The kernels of normal mode across nodes, for one way to reach them. */
public record InternodeKernels(
        CudaFunction dispatch, CudaFunction combine, CudaFunction combineFp8) {
    private static final String FOLDER = "io/deepep/normal/nvshmem/";

    /** Those that call a library. */
    public static InternodeKernels over(NetworkLibrary library, int sharedBytes) {
        InternodeKernels kernels =
                new InternodeKernels(
                        load(library, "internode_dispatch_nvshmem"),
                        load(library, "internode_combine_nvshmem"),
                        load(library, "internode_combine_fp8_nvshmem"));
        kernels.allowSharedBytes(sharedBytes);
        return kernels;
    }

    void allowSharedBytes(int bytes) {
        dispatch.setMaxDynamicSharedBytes(bytes);
        combine.setMaxDynamicSharedBytes(bytes);
        combineFp8.setMaxDynamicSharedBytes(bytes);
    }

    private static CudaFunction load(NetworkLibrary library, String name) {
        CudaModule module = library.load(name, find(name));
        InternodeStructs.HEADER.requireSame(module);
        return module.function("deepep_" + name);
    }

    private static URL find(String name) {
        return DeviceCode.find(InternodeKernels.class, FOLDER + name + ".fatbin");
    }

    /** Whether there are any here. */
    public static boolean areBuilt() {
        return find("internode_dispatch_nvshmem") != null;
    }
}
