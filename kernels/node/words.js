// The memory that the two threads of the driver share: what its words mean.
"use strict";

module.exports = {
    // Replies: how many stream_sync_reply have come. Gate: see below. Asked, Heard: interrupts that
    // were asked for, and the last of them that the main thread has taken up.
    Word: { Replies: 0, Gate: 1, Asked: 2, Heard: 3 },
    // Whether the main thread may be cut off. Held: it is sending a message, which must stay whole.
    Gate: { Open: 0, Held: 1, Ending: 2 },
    Count: 4,
};
