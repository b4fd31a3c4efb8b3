// The export of a component. `tidemill build` bundles it with the author's module; authors do not import it.

export declare const handler: object;
