package io.deepep.cuda.kernel;

import io.deepep.Tensor;
import io.deepep.cuda.KernelParams;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;

/**
 * A struct that Java and kernels share, defined once: here. {@link KernelHeader} writes its
 * declaration in C++; Java fills it by field name.
 *
 * <p>Fields lie in the order they are added. Each has to begin at a multiple of its width, so that
 * there is no padding between them.
 */
public final class KernelStruct {
    private static final int MAX_FIELD_CHARACTERS = 36;
    private static final String INDENT = "    ";

    private final String name;
    private final String comment;
    private final List<Field> fields;
    private final Map<String, Field> byName = new LinkedHashMap<>();
    private final long numBytes;

    private KernelStruct(Builder from) {
        name = from.name;
        comment = from.comment;
        fields = List.copyOf(from.fields);
        numBytes = from.numBytes;
        fields.forEach(field -> byName.put(field.name(), field));
        if (byName.size() != fields.size() || numBytes % Long.BYTES != 0) {
            throw new IllegalStateException(
                    name + " has a field twice, or ends off a multiple of 8: " + numBytes);
        }
    }

    /** A field; {@code type} is C++'s, {@code extents} are an array's. */
    private record Field(
            String name,
            String type,
            List<Integer> extents,
            String comment,
            long offset,
            long numBytes) {
        String declaration() {
            StringBuilder text = new StringBuilder(type).append(' ').append(name);
            extents.forEach(extent -> text.append('[').append(extent).append(']'));
            return text.append(';').toString();
        }
    }

    /** Starts a struct; the comment stands above its declaration. */
    public static Builder builder(String name, String comment) {
        return new Builder(name, comment);
    }

    /** Bytes of the struct. */
    public long numBytes() {
        return numBytes;
    }

    /** Where a field begins. */
    public long offset(String field) {
        Field found = byName.get(field);
        if (found == null) {
            throw new IllegalArgumentException(
                    name + " has no field " + field + "; it has " + byName.keySet());
        }
        return found.offset();
    }

    /** Where an element of an array begins. */
    private long offset(String field, int idx, int elementBytes) {
        long offset = offset(field);
        long length = byName.get(field).numBytes() / elementBytes;
        if (idx < 0 || idx >= length) {
            throw new IndexOutOfBoundsException(
                    name + "." + field + ": idx=" + idx + " is not in [0, " + length + ")");
        }
        return offset + (long) idx * elementBytes;
    }

    /** Zeroed parameters, to be filled once and launched often. */
    public Params allocate(Arena arena) {
        return new Params(this, KernelParams.struct(arena, numBytes));
    }

    /** Everything that must be equal in Java and in a binary. */
    String signature() {
        StringJoiner text = new StringJoiner(";", name + "{", "}" + numBytes);
        fields.forEach(field -> text.add(field.declaration() + field.offset()));
        return text.toString();
    }

    /** The declaration, with assertions on every offset. */
    String declaration() {
        StringBuilder text = new StringBuilder("// " + comment + "\nstruct " + name + " {\n");
        for (Field field : fields) {
            text.append(INDENT).append(field.declaration());
            if (!field.comment().isEmpty()) {
                int gap = MAX_FIELD_CHARACTERS - field.declaration().length();
                text.append(" ".repeat(Math.max(gap, 2))).append("// ").append(field.comment());
            }
            text.append('\n');
        }
        text.append("};\nstatic_assert(sizeof(%s) == %d);\n".formatted(name, numBytes));
        for (Field field : fields) {
            text.append(
                    "static_assert(offsetof(%s, %s) == %d);\n"
                            .formatted(name, field.name(), field.offset()));
        }
        return text.toString();
    }

    /**
     * One struct in memory, filled by field name.
     *
     * @param struct which
     * @param memory as a launch takes it
     * @param at where it begins there
     */
    public record Params(KernelStruct struct, KernelParams memory, long at) {
        /** Where nothing is read; aligned like everything. */
        private static final long NOWHERE = 128;

        /** One at the beginning of {@code memory}. */
        public Params(KernelStruct struct, KernelParams memory) {
            this(struct, memory, 0);
        }

        /** Another struct, which is a field of this one. */
        public Params inner(String field, KernelStruct inner) {
            return new Params(inner, memory, at + struct.offset(field));
        }

        /** Writes a 64-bit field. */
        public Params set(String field, long value) {
            memory.setLong(at + struct.offset(field), value);
            return this;
        }

        /**
         * Writes a tensor's address, or 0 for null, by which kernels know that none was given. A
         * tensor without elements is given all the same, though engines have it at address 0.
         */
        public Params setTensor(String field, Tensor tensor) {
            return set(field, tensor == null ? 0 : Math.max(tensor.address(), NOWHERE));
        }

        /** Writes an element of an array of 64-bit fields. */
        public Params set(String field, int idx, long value) {
            memory.setLong(at + struct.offset(field, idx, Long.BYTES), value);
            return this;
        }

        /** Writes a 32-bit field. */
        public Params setInt(String field, int value) {
            memory.setInt(at + struct.offset(field), value);
            return this;
        }

        /** Sets an element of an array of 32-bit fields. */
        public Params setInt(String field, int idx, int value) {
            memory.setInt(at + struct.offset(field, idx, Integer.BYTES), value);
            return this;
        }
    }

    /** Collects the fields of a {@link KernelStruct}. */
    public static final class Builder {
        private final String name;
        private final String comment;
        private final List<Field> fields = new ArrayList<>();
        private long numBytes;

        private Builder(String name, String comment) {
            this.name = name;
            this.comment = comment;
        }

        /** Another struct as a field; {@code extents} make it an array. */
        public Builder struct(String field, KernelStruct struct, int... extents) {
            return add(field, struct.name, struct.numBytes, Long.BYTES, "", extents);
        }

        /** An address, offset or stride: {@code uint64_t}; {@code extents} make it an array. */
        public Builder u64(String field, String comment, int... extents) {
            return add(field, "uint64_t", Long.BYTES, Long.BYTES, comment, extents);
        }

        /** {@code int64_t}. */
        public Builder i64(String field, String comment) {
            return add(field, "int64_t", Long.BYTES, Long.BYTES, comment);
        }

        /** {@code uint32_t}; {@code extents} make it an array. */
        public Builder u32(String field, String comment, int... extents) {
            return add(field, "uint32_t", Integer.BYTES, Integer.BYTES, comment, extents);
        }

        /** {@code int32_t}; {@code extents} make it an array. */
        public Builder i32(String field, String comment, int... extents) {
            return add(field, "int32_t", Integer.BYTES, Integer.BYTES, comment, extents);
        }

        private Builder add(
                String field,
                String type,
                long width,
                int alignment,
                String fieldComment,
                int... extents) {
            if (numBytes % alignment != 0) {
                throw new IllegalStateException(
                        name + "." + field + " would begin at " + numBytes + ": order by width");
            }
            List<Integer> counts = new ArrayList<>();
            long bytes = width;
            for (int extent : extents) {
                counts.add(extent);
                bytes *= extent;
            }
            fields.add(new Field(field, type, List.copyOf(counts), fieldComment, numBytes, bytes));
            numBytes += bytes;
            return this;
        }

        /** The struct. */
        public KernelStruct build() {
            return new KernelStruct(this);
        }
    }
}
