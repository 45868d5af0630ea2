package io.deepep.cuda.rdma;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A command to the card's firmware, and room for its answer. Where the fields are is said here
 * once, in bits from the beginning of the command or answer; the numbers are those of the public
 * Programmer's Reference Manual. Fields are big-endian: bit 0 is the highest of the first byte.
 */
final class Command {
    static final int QUERY_CAPABILITIES = 0x100;
    static final int CREATE_COMPLETION_QUEUE = 0x400;
    static final int CREATE_QUEUE_PAIR = 0x500;
    static final int RESET_TO_INIT = 0x502;
    static final int INIT_TO_RECEIVE = 0x503;
    static final int RECEIVE_TO_SEND = 0x504;
    static final int TO_RESET = 0x50a;

    private static final Field OPCODE = new Field(0x00, 16);
    private static final Field STATUS = new Field(0x00, 8);
    private static final Field SYNDROME = new Field(0x20, 32);
    static final Field MODIFIER = new Field(0x30, 16);
    static final Field NUMBER = new Field(0x48, 24);

    private static final int QUEUE_BYTES = 0x880 / 8;
    private static final int SHORT_BYTES = 0x10;
    private static final int ANSWER_BYTES = 0x10;
    private static final int CAPABILITIES_BYTES = 0x10 + 0x1000;

    /** Of a completion queue's creation; its context begins at 0x80. */
    static final class Completions {
        private static final int CONTEXT = 0x80;
        static final Field RECORD_VALID = new Field(CONTEXT + 0x06, 1);
        static final Field COLLAPSED = new Field(CONTEXT + 0x0b, 1);
        static final Field IGNORE_OVERRUN = new Field(CONTEXT + 0x0e, 1);
        static final Field RECORD_MEMORY = new Field(CONTEXT + 0x20, 32);
        static final Field LOG_ENTRIES = new Field(CONTEXT + 0x63, 5);
        static final Field DOORBELL_PAGE = new Field(CONTEXT + 0x68, 24);
        static final Field EVENT_QUEUE = new Field(CONTEXT + 0xa0, 32);
        static final Field RECORD_OFFSET = new Field(CONTEXT + 0x1c0, 64);
        static final Field MEMORY_OFFSET = new Field(0x280, 64);
        static final Field MEMORY = new Field(0x2c0, 32);
        static final Field MEMORY_VALID = new Field(0x2e0, 1);

        private Completions() {}
    }

    /** Of a queue pair's creation and its changes; its context begins at 0xc0. */
    static final class Pair {
        private static final int CONTEXT = 0xc0;
        private static final int PATH = CONTEXT + 0xc0;
        static final int MIGRATED = 3;
        static final int NO_RECEIVES = 3;
        static final int ATOMICS_UP_TO_8_BYTES = 3;

        /**
         * In {@link #TIME_STAMPS}, {@code ts_format} of {@code mlx5_ifc_qpc_bits} in rdma-core's
         * {@code mlx5_ifc.h}: whichever the card has. Cards set to real time refuse 0, those that
         * run freely.
         */
        static final int DEFAULT_TIME_STAMPS = 1;

        static final Field PATH_STATE = new Field(CONTEXT + 0x13, 2);
        static final Field DOMAIN = new Field(CONTEXT + 0x28, 24);
        static final Field MTU = new Field(CONTEXT + 0x40, 3);
        static final Field LOG_MAX_MESSAGE = new Field(CONTEXT + 0x43, 5);
        static final Field LOG_ENTRIES = new Field(CONTEXT + 0x51, 4);
        static final Field TIME_STAMPS = new Field(CONTEXT + 0x58, 2);
        static final Field DOORBELL_PAGE = new Field(CONTEXT + 0x68, 24);
        static final Field PEER = new Field(CONTEXT + 0xa8, 24);
        static final Field LOG_ATOMICS_SENT = new Field(CONTEXT + 0x388, 3);
        static final Field RETRIES = new Field(CONTEXT + 0x38d, 3);
        static final Field RETRIES_NOT_READY = new Field(CONTEXT + 0x390, 3);
        static final Field SEND_COMPLETIONS = new Field(CONTEXT + 0x3e8, 24);
        static final Field LOG_ATOMICS_TAKEN = new Field(CONTEXT + 0x488, 3);
        static final Field ATOMIC_MODE = new Field(CONTEXT + 0x48c, 4);
        static final Field WRITE_ACCESS = new Field(CONTEXT + 0x491, 1);
        static final Field ATOMIC_ACCESS = new Field(CONTEXT + 0x492, 1);
        static final Field MIN_NOT_READY_TIMER = new Field(CONTEXT + 0x4a3, 5);
        static final Field RECEIVE_COMPLETIONS = new Field(CONTEXT + 0x4e8, 24);
        static final Field RECORD_OFFSET = new Field(CONTEXT + 0x500, 64);
        static final Field RECEIVE_TYPE = new Field(CONTEXT + 0x565, 3);
        static final Field RECORD_VALID = new Field(CONTEXT + 0x683, 1);
        static final Field RECORD_MEMORY = new Field(CONTEXT + 0x720, 32);
        static final Field MEMORY_OFFSET = new Field(0x800, 64);
        static final Field MEMORY = new Field(0x840, 32);
        static final Field MEMORY_VALID = new Field(0x860, 1);

        static final Field ADAPTIVE_ROUTING = new Field(PATH + 0x01, 1);
        static final Field GLOBAL_HEADER = new Field(PATH + 0x28, 1);
        static final Field LID = new Field(PATH + 0x30, 16);
        static final Field ACK_TIMEOUT = new Field(PATH + 0x40, 5);
        static final Field GID_INDEX = new Field(PATH + 0x48, 8);
        static final Field HOP_LIMIT = new Field(PATH + 0x58, 8);
        static final Field TRAFFIC_CLASS = new Field(PATH + 0x64, 8);
        static final Field GID_HIGH = new Field(PATH + 0x80, 64);
        static final Field GID_LOW = new Field(PATH + 0xc0, 64);
        static final Field DSCP = new Field(PATH + 0x10a, 6);
        static final Field UDP_PORT = new Field(PATH + 0x110, 16);
        static final Field ETHERNET_PRIORITY = new Field(PATH + 0x121, 3);
        static final Field SERVICE_LEVEL = new Field(PATH + 0x124, 4);
        static final Field PORT = new Field(PATH + 0x128, 8);
        static final Field MAC = new Field(PATH + 0x130, 48);

        private Pair() {}
    }

    /** Of the answer to a query of capabilities, which begin at 0x80. */
    static final class Capabilities {
        private static final int BEGIN = 0x80;

        /** In {@link #MODIFIER}: which capabilities, as they are set now. */
        static final int GENERAL_NOW = 0 << 1 | 1;

        static final int ATOMICS_NOW = 3 << 1 | 1;

        static final Field COMPLETION_VERSION = new Field(BEGIN + 0x1fc, 4);
        static final Field LOG_DOORBELL_BYTES = new Field(BEGIN + 0x26b, 5);
        static final Field RELAXED_ORDERING_WRITE = new Field(BEGIN + 0xe8, 1);
        static final Field ATOMIC_OPERATIONS = new Field(BEGIN + 0x90, 16);
        static final Field ATOMIC_SIZES = new Field(BEGIN + 0xb0, 16);

        /** In {@link #ATOMIC_OPERATIONS}: compare and swap under masks. */
        static final long MASKED_SWAP = 1 << 2;

        /** In {@link #ATOMIC_SIZES}. */
        static final long EIGHT_BYTES = 1 << 3;

        private Capabilities() {}
    }

    private final MemorySegment in;
    private final MemorySegment out;

    private Command(Arena arena, int opcode, int inBytes, int outBytes) {
        in = arena.allocate(inBytes, Long.BYTES);
        out = arena.allocate(outBytes, Long.BYTES);
        set(OPCODE, opcode);
    }

    /** A range of bits. */
    record Field(int bit, int numBits) {}

    /** Makes or changes a queue. */
    static Command ofQueue(Arena arena, int opcode) {
        return new Command(arena, opcode, QUEUE_BYTES, ANSWER_BYTES);
    }

    /** Names an object and nothing else. */
    static Command plain(Arena arena, int opcode) {
        return new Command(arena, opcode, SHORT_BYTES, ANSWER_BYTES);
    }

    /** Asks for capabilities. */
    static Command capabilities(Arena arena, int which) {
        return new Command(arena, QUERY_CAPABILITIES, SHORT_BYTES, CAPABILITIES_BYTES)
                .set(MODIFIER, which);
    }

    /** Writes a field of the command. */
    Command set(Field field, long value) {
        for (int i = 0; i < field.numBits; i++) {
            int bit = field.bit + field.numBits - 1 - i;
            byte mask = (byte) (0x80 >>> bit % 8);
            byte old = in.get(ValueLayout.JAVA_BYTE, bit / 8);
            boolean one = (value >>> i & 1) != 0;
            in.set(ValueLayout.JAVA_BYTE, bit / 8, (byte) (one ? old | mask : old & ~mask));
        }
        return this;
    }

    /** Reads a field of the answer. */
    long get(Field field) {
        long value = 0;
        for (int bit = field.bit; bit < field.bit + field.numBits; bit++) {
            int one = out.get(ValueLayout.JAVA_BYTE, bit / 8) >>> (7 - bit % 8) & 1;
            value = value << 1 | one;
        }
        return value;
    }

    /** Of a call that sends it: what it is sent to, the command, room for the answer. */
    Object[] argumentsFor(MemorySegment object) {
        return new Object[] {object, in, in.byteSize(), out, out.byteSize()};
    }

    /** Whether the firmware has refused it; else it never came there. */
    boolean isRefused() {
        return get(STATUS) != 0;
    }

    /** What the firmware says of a command that it refused, for the message. */
    String refusal() {
        return "status 0x%x, syndrome 0x%x".formatted(get(STATUS), get(SYNDROME));
    }
}
