package io.deepep.cuda.nvshmem;

import io.deepep.error.NativeCallException;
import java.util.List;

/** What NVSHMEM's functions return. */
final class NvshmemStatus {
    static final int SUCCESS = 0;

    private static final List<String> NAMES =
            List.of(
                    "NVSHMEMX_SUCCESS",
                    "NVSHMEMX_ERROR_INVALID_VALUE",
                    "NVSHMEMX_ERROR_OUT_OF_MEMORY",
                    "NVSHMEMX_ERROR_NOT_SUPPORTED",
                    "NVSHMEMX_ERROR_SYMMETRY",
                    "NVSHMEMX_ERROR_GPU_NOT_SELECTED",
                    "NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED",
                    "NVSHMEMX_ERROR_INTERNAL");

    private NvshmemStatus() {}

    static String name(int status) {
        return status >= 0 && status < NAMES.size()
                ? NAMES.get(status)
                : "NVSHMEMX_ERROR_" + status;
    }

    static void check(String call, int status, String where) {
        if (status != SUCCESS) {
            throw new NativeCallException(call, status, name(status), where, false);
        }
    }
}
