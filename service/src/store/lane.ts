/**
 * Orders transactions on one connection that receives statements without waiting for earlier results: a transaction is sent while the one
 * before it waits for the disk. At most two are under way.
 */

/** One transaction. */
export interface Passage {
  /** All of it is sent, with its commit: the next one may be sent. */
  sent(): void;
  /** Resolves when the transactions before it have ended. */
  inOrder(): Promise<void>;
  /** Its result is known and used. */
  end(): void;
}

/** The order of the transactions of one connection. */
export interface Lane {
  /** Resolves when a transaction that enters now can be sent. */
  ready(): Promise<void>;
  /** Resolves when this transaction can be sent, in the order of the calls. The caller must call `end`. */
  enter(): Promise<Passage>;
}

interface Place {
  readonly sent: PromiseWithResolvers<void>;
  readonly ended: PromiseWithResolvers<void>;
}

function createPlace(): Place {
  return { sent: Promise.withResolvers(), ended: Promise.withResolvers() };
}

/** Creates a lane without transactions. */
export function createLane(): Lane {
  const free = createPlace();
  free.sent.resolve();
  free.ended.resolve();
  let [last, lastButOne] = [free, free];
  const canSend = async (before: Place, beforeThat: Place): Promise<void> => {
    await before.sent.promise;
    await beforeThat.ended.promise;
  };
  return {
    ready: () => canSend(last, lastButOne),
    async enter() {
      const place = createPlace();
      const [before, beforeThat] = [last, lastButOne];
      [last, lastButOne] = [place, last];
      await canSend(before, beforeThat);
      return {
        sent: () => place.sent.resolve(),
        inOrder: () => before.ended.promise,
        end() {
          place.sent.resolve();
          void before.ended.promise.then(() => place.ended.resolve());
        },
      };
    },
  };
}
