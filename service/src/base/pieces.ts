/** A long text in pieces: it is never copied as a whole, and its bytes are counted piece by piece. */
export interface Pieces {
  readonly texts: readonly string[];
  /** Bytes in UTF-8. */
  readonly bytes: number;
}

/** Collects pieces. */
export interface PieceCollector {
  add(text: string): void;
  /** Returns the pieces so far. */
  pieces(): Pieces;
}

export function createPieces(): PieceCollector {
  const texts: string[] = [];
  let bytes = 0;
  return {
    add(text) {
      texts.push(text);
      bytes += Buffer.byteLength(text);
    },
    pieces: () => ({ texts, bytes }),
  };
}
