// Keeps, per site and day, the ranking of the most viewed pages, and emits what changes in it.

import { exportProcessor, PlainDate, type Handle, type MapState, type Timers, type ValueState } from "tidemill";

const DAY_MS = 24 * 60 * 60 * 1000;
/** Pages of a ranking, if the query has no parameter `top`. */
const TOP = 3;

interface Key {
  site: string;
  day: PlainDate;
}

interface View {
  page: string;
}

interface Place {
  page: string;
  views: number;
}

/** A rank that another page has taken. */
interface Change extends Key, Place {
  rank: number;
  /** Who had the rank before; NULL if nobody. */
  before: string | null;
}

export class TopPages {
  #top = TOP;
  /** Views so far, of every page. */
  #views!: MapState<string, number>;
  /** The ranking as it was last told. */
  #ranking!: ValueState<Place[]>;

  init(handle: Handle): void {
    this.#top = Number(handle.parameter("top") ?? TOP);
    this.#views = handle.mapState("views", "STRING", "BIGINT");
    this.#ranking = handle.valueState("ranking", "ARRAY<STRUCT<page: STRING, views: BIGINT>>");
  }

  handleInputRows(key: Key, rows: Iterable<View>, timers: Timers): Change[] {
    const viewed = this.#count(rows);
    const before = this.#ranking.get() ?? [];
    const ranking = this.#rank(before, viewed);
    this.#ranking.update(ranking);
    // When the watermark has passed the day, no more of it comes: later rows are dropped.
    timers.register((key.day.days + 1) * DAY_MS);
    return ranking.flatMap(({ page, views }, at) => {
      const was = before[at]?.page ?? null;
      return page === was ? [] : [{ ...key, rank: at + 1, page, views, before: was }];
    });
  }

  handleExpiredTimer(): void {
    this.#views.clear();
    this.#ranking.clear();
  }

  /** Counts views, and answers the pages that have new ones, with all of theirs. */
  #count(rows: Iterable<View>): Map<string, number> {
    const fresh = new Map<string, number>();
    for (const { page } of rows) fresh.set(page, (fresh.get(page) ?? 0) + 1);
    for (const [page, views] of fresh) {
      const all = (this.#views.get(page) ?? 0) + views;
      this.#views.set(page, all);
      fresh.set(page, all);
    }
    return fresh;
  }

  /** Counts only grow, so a page that enters the ranking is one that was viewed now: no need to read the whole map. */
  #rank(before: Place[], viewed: Map<string, number>): Place[] {
    const places = new Map(before.map(({ page, views }) => [page, views]));
    for (const [page, views] of viewed) places.set(page, views);
    const ranking = Array.from(places, ([page, views]) => ({ page, views }));
    ranking.sort((left, right) => right.views - left.views || (left.page < right.page ? -1 : 1));
    return ranking.slice(0, this.#top);
  }
}

exportProcessor(TopPages, {
  key: "site STRING NOT NULL, day DATE NOT NULL",
  input: "page STRING NOT NULL",
  output: "site STRING NOT NULL, day DATE NOT NULL, rank INT NOT NULL, page STRING NOT NULL, views BIGINT NOT NULL, before STRING",
});
