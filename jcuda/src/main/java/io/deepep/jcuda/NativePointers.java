package io.deepep.jcuda;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import jcuda.NativePointerObject;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;

/**
 * The numbers inside JCuda's objects. JCuda keeps them private and has no way to make a stream or
 * an event from one; its own native code sets the same fields.
 */
final class NativePointers {
    private static final VarHandle NATIVE_POINTER =
            longField(NativePointerObject.class, "nativePointer");
    private static final VarHandle BYTE_OFFSET = longField(Pointer.class, "byteOffset");

    private NativePointers() {}

    private static VarHandle longField(Class<?> type, String name) {
        try {
            return MethodHandles.privateLookupIn(type, MethodHandles.lookup())
                    .findVarHandle(type, name, long.class);
        } catch (ReflectiveOperationException otherVersion) {
            throw new LinkageError(
                    "%s has no accessible field %s; use JCuda 12.6.0, on the class path"
                            .formatted(type.getName(), name),
                    otherVersion);
        }
    }

    /** The driver's handle or base address in {@code object}. */
    static long get(NativePointerObject object) {
        return (long) NATIVE_POINTER.get(object);
    }

    /** Puts a handle into a fresh object. */
    static <T extends NativePointerObject> T set(T object, long handle) {
        NATIVE_POINTER.set(object, handle);
        return object;
    }

    /**
     * The device address that {@code pointer} stands for, its offset included.
     *
     * @throws IllegalArgumentException if it points to nothing, or to memory of Java
     */
    static long address(Pointer pointer) {
        long base = get(pointer);
        // Pointers to arrays and buffers have a base of 0 too, and an offset into them; no
        // CUdeviceptr is one of those.
        boolean ofJava = base == 0 && !(pointer instanceof CUdeviceptr);
        long address = base + (long) BYTE_OFFSET.get(pointer);
        if (ofJava || address == 0) {
            throw new IllegalArgumentException(
                    ("pointer %s is not device memory; allocate it (cuMemAlloc, cudaMalloc), or for a known"
                                    + " address take new CUdeviceptr().withByteOffset(address)")
                            .formatted(pointer));
        }
        return address;
    }
}
