package io.deepep;

/** An event that is always done. */
enum CompletedEvent implements Event {
    COMPLETED;

    @Override
    public boolean isDone() {
        return true;
    }

    @Override
    public void synchronize() {}
}
