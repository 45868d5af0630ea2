package io.deepep.cuda.kernel;

import io.deepep.cuda.CudaModule;
import io.deepep.error.AbiMismatchException;
import io.deepep.spi.KernelEnum;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The constants and structs that one set of kernels shares with Java, as a C++ header. The header
 * is committed beside the kernels, and a test holds it against {@link #text()}. Every binary built
 * with it carries {@link #hash()}, which is compared when it is loaded.
 */
public final class KernelHeader {
    private static final int ENUM_COMMENT_COLUMN = 30;

    private final String namespace;
    private final String hashVariable;
    private final String definedIn;
    private final Map<String, KernelHeader> includes = new LinkedHashMap<>();
    private final Map<String, Integer> constants = new LinkedHashMap<>();
    private final List<KernelStruct> structs = new ArrayList<>();
    private final Map<String, Enumeration> enumerations = new LinkedHashMap<>();

    /** An enumeration for kernels: names and numbers in order. */
    private record Enumeration(
            String type, String definedIn, Map<String, Integer> values, List<String> comments) {
        String declaration(String name) {
            StringBuilder text =
                    new StringBuilder(
                            "// See %s.\nenum %s : %s {\n".formatted(definedIn, name, type));
            Iterator<String> comment = comments.iterator();
            values.forEach(
                    (value, number) -> {
                        String field = "    " + value + " = " + number + ",";
                        String beside = comment.next();
                        text.append(field);
                        if (!beside.isEmpty()) {
                            int gap = Math.max(ENUM_COMMENT_COLUMN - field.length(), 2);
                            text.append(" ".repeat(gap)).append("// ").append(beside);
                        }
                        text.append('\n');
                    });
            return text.append("};\n").toString();
        }
    }

    /**
     * An empty header.
     *
     * @param namespace of everything in it
     * @param hashVariable name of the device variable that holds the hash, unmangled; null for a
     *     header that others include and vouch for
     * @param definedIn the Java class that defines the structs, for the comment on top
     */
    public KernelHeader(String namespace, String hashVariable, Class<?> definedIn) {
        this(namespace, hashVariable, definedIn.getName());
    }

    private KernelHeader(String namespace, String hashVariable, String definedIn) {
        this.namespace = namespace;
        this.hashVariable = hashVariable;
        this.definedIn = definedIn;
    }

    /** Includes another header, which this one's hash covers too. */
    public KernelHeader include(String path, KernelHeader header) {
        includes.put(path, header);
        return this;
    }

    /** Adds a constant. */
    public KernelHeader constant(String name, int value) {
        constants.put(name, value);
        return this;
    }

    /**
     * Adds an enumeration, {@code k<prefix><Name> = value} for each of its constants.
     *
     * @param name in C++
     * @param type that it is stored as, in C++
     */
    public <E extends Enum<E> & KernelEnum> KernelHeader enumeration(
            String name, String type, String prefix, Class<E> values) {
        Map<String, Integer> numbers = new LinkedHashMap<>();
        List<String> comments = new ArrayList<>();
        for (E value : values.getEnumConstants()) {
            numbers.put(value.deviceName(prefix), value.value());
            comments.add(value.comment());
        }
        enumerations.put(
                name,
                new Enumeration(type, values.getSimpleName(), numbers, List.copyOf(comments)));
        return this;
    }

    /** Adds a struct, after those it contains. */
    public KernelHeader struct(KernelStruct struct) {
        structs.add(struct);
        return this;
    }

    /** Every number that kernels see by a name: constants and values of enumerations. */
    public Map<String, Integer> numbers() {
        Map<String, Integer> all = new LinkedHashMap<>(constants);
        enumerations.values().forEach(values -> all.putAll(values.values()));
        return Collections.unmodifiableMap(all);
    }

    /**
     * This header with another value for one of its {@link #numbers}, or of those that it includes,
     * as tests want it.
     */
    public KernelHeader with(String number, int value) {
        KernelHeader changed = new KernelHeader(namespace, hashVariable, definedIn);
        includes.forEach((path, header) -> changed.include(path, header.with(number, value)));
        changed.constants.putAll(constants);
        changed.constants.replace(number, value);
        enumerations.forEach(
                (name, enumeration) -> {
                    Map<String, Integer> values = new LinkedHashMap<>(enumeration.values());
                    values.replace(number, value);
                    changed.enumerations.put(
                            name,
                            new Enumeration(
                                    enumeration.type(),
                                    enumeration.definedIn(),
                                    values,
                                    enumeration.comments()));
                });
        changed.structs.addAll(structs);
        return changed;
    }

    /** FNV-1a over names, types, offsets and values; comments of structs do not matter. */
    public long hash() {
        long hash = 0xcbf29ce484222325L;
        for (byte b : signature().getBytes(StandardCharsets.UTF_8)) {
            hash = (hash ^ (b & 0xff)) * 0x100000001b3L;
        }
        return hash;
    }

    private String signature() {
        StringBuilder text = new StringBuilder();
        includes.values().forEach(header -> text.append(header.signature()));
        text.append(constants);
        enumerations.forEach((name, values) -> text.append(name).append(values.values()));
        structs.forEach(struct -> text.append(struct.signature()));
        return text.toString();
    }

    /**
     * Compares the hash that a loaded module was built with.
     *
     * @throws AbiMismatchException if it is another one
     */
    public void requireSame(CudaModule module) {
        requireSame(module.name(), module.globalLong(hashVariable));
    }

    /**
     * Compares a binary's hash.
     *
     * @param binary its name, for the message
     * @param built the hash that it was built with
     * @throws AbiMismatchException if it is another one
     */
    public void requireSame(String binary, long built) {
        if (built != hash()) {
            throw new AbiMismatchException(
                    ("device code %s was built with %s=%s, but %s has %s; use jars of one build, or run a clean"
                                    + " build")
                            .formatted(
                                    binary,
                                    hashVariable,
                                    Long.toHexString(built),
                                    definedIn,
                                    Long.toHexString(hash())));
        }
    }

    /** The header's text. */
    public String text() {
        StringBuilder text =
                new StringBuilder(
                        "// Generated from "
                                + definedIn
                                + ", which a test compares with this file: do not edit.\n"
                                + "// clang-format off\n"
                                + "#pragma once\n\n#include <cstddef>\n#include <cstdint>\n\n");
        includes.keySet().forEach(path -> text.append("#include \"" + path + "\"\n"));
        text.append(includes.isEmpty() ? "" : "\n");
        text.append("namespace " + namespace + " {\n\n");
        constants.forEach(
                (name, value) -> text.append("constexpr int " + name + " = " + value + ";\n"));
        text.append(constants.isEmpty() ? "" : "\n");
        enumerations.forEach((name, values) -> text.append(values.declaration(name)).append('\n'));
        structs.forEach(struct -> text.append(struct.declaration()).append('\n'));
        if (hashVariable != null) {
            text.append("// Read when the binary is loaded: its structs have to be Java's.\n");
            text.append("extern \"C\" {\n__device__ uint64_t " + hashVariable + " = ");
            text.append("0x" + Long.toHexString(hash()) + ";\n}\n\n");
        }
        return text.append("}  // namespace " + namespace + "\n").toString();
    }
}
