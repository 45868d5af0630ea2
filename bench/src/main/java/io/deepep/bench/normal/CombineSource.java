package io.deepep.bench.normal;

/** Where an engine has the rows that a combine takes. */
public enum CombineSource {
    /** In the buffer's combine memory. */
    BUFFER("combine-zero-copy"),

    /** In plain device memory, as cudaMalloc gives it. */
    PLAIN_MEMORY("combine-plain"),

    /** In memory that other ranks cannot be given access to. */
    ELSEWHERE("combine-staged");

    private final String operation;

    CombineSource(String operation) {
        this.operation = operation;
    }

    /** The combine's name in records. */
    String operation() {
        return operation;
    }
}
