package io.deepep.cuda;

import io.deepep.error.AbiMismatchException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The constants and structs that one set of kernels shares with Java, as a C++ header. The header
 * is committed beside the kernels, and a test holds it against {@link #text()}. Every binary built
 * with it carries {@link #hash()}, which is compared when it is loaded.
 */
public final class KernelHeader {
    private final String namespace;
    private final String hashVariable;
    private final String definedIn;
    private final Map<String, KernelHeader> includes = new LinkedHashMap<>();
    private final Map<String, Integer> constants = new LinkedHashMap<>();
    private final List<KernelStruct> structs = new ArrayList<>();
    private String preamble = "";

    /**
     * An empty header.
     *
     * @param namespace of everything in it
     * @param hashVariable name of the device variable that holds the hash, unmangled; null for a
     *     header that others include and vouch for
     * @param definedIn the Java class that defines the structs, for the comment on top
     */
    public KernelHeader(String namespace, String hashVariable, Class<?> definedIn) {
        this.namespace = namespace;
        this.hashVariable = hashVariable;
        this.definedIn = definedIn.getName();
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

    /** Adds text before the structs. */
    KernelHeader preamble(String text) {
        preamble = text + "\n";
        return this;
    }

    /** Adds a struct, after those it contains. */
    public KernelHeader struct(KernelStruct struct) {
        structs.add(struct);
        return this;
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
        text.append(constants).append(preamble);
        structs.forEach(struct -> text.append(struct.signature()));
        return text.toString();
    }

    /**
     * Compares the hash that a loaded module was built with.
     *
     * @throws AbiMismatchException if it is another one
     */
    public void requireSame(CudaModule module) {
        long built = module.globalLong(hashVariable);
        if (built != hash()) {
            throw new AbiMismatchException(
                    "device code "
                            + module.name()
                            + " was built with "
                            + hashVariable
                            + "="
                            + Long.toHexString(built)
                            + " but "
                            + definedIn
                            + " has "
                            + Long.toHexString(hash())
                            + "; use jars of one build, or build again from clean sources");
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
        text.append(preamble);
        structs.forEach(struct -> text.append(struct.declaration()).append('\n'));
        if (hashVariable != null) {
            text.append("// Read when the binary is loaded: its structs have to be Java's.\n");
            text.append("extern \"C\" {\n__device__ uint64_t " + hashVariable + " = ");
            text.append("0x" + Long.toHexString(hash()) + ";\n}\n\n");
        }
        return text.append("}  // namespace " + namespace + "\n").toString();
    }
}
