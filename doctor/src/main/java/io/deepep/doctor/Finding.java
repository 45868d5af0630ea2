package io.deepep.doctor;

/**
 * One thing that was looked at.
 *
 * @param topic what it belongs to
 * @param item what was looked at
 * @param status how it is
 * @param detail what was found
 * @param cure the command or setting that mends it; empty where nothing needs mending
 */
public record Finding(String topic, String item, Status status, String detail, String cure) {
    /** How a thing is. */
    public enum Status {
        /** There and usable. */
        OK,
        /** Nothing to judge. */
        INFO,
        /** Works, but slower or not with everything. */
        WARN,
        /** Some mode cannot run because of it. */
        MISSING
    }

    static Finding ok(String topic, String item, String detail) {
        return new Finding(topic, item, Status.OK, detail, "");
    }

    static Finding info(String topic, String item, String detail) {
        return new Finding(topic, item, Status.INFO, detail, "");
    }

    static Finding warn(String topic, String item, String detail, String cure) {
        return new Finding(topic, item, Status.WARN, detail, cure);
    }

    static Finding missing(String topic, String item, String detail, String cure) {
        return new Finding(topic, item, Status.MISSING, detail, cure);
    }

    boolean isOk() {
        return status == Status.OK;
    }
}
