/** What the shim knows of the parts that stand on it. */

/** What a site says about its app. It may have further members, which are not checked. */
export interface Manifest {
  /** The protocol's version. */
  abp: string;
  app: {
    id: string;
    name: string;
    version: string;
    description?: string;
    homepage?: string;
    icon?: string;
    support?: string;
  };
  capabilities: {
    name: string;
    description?: string;
    inputSchema?: object;
    outputSchema?: object;
    experimental?: boolean;
    deprecated?: boolean;
    requirements?: { type: string; description: string; resolution?: string }[];
  }[];
}

/** Loads each part. */
export interface Parts {
  manifest(): Promise<{
    manifestOf(definition: { app: Manifest['app']; capabilities: object }): Manifest;
  }>;
}
