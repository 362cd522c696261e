'use client';
import { useConnection } from 'abp-bridge/react';
import { useEffect } from 'react';
import { smoke } from '../smoke.js';

const options = { origin: 'https://writer.example', agent: { name: 'next', version: '1' } };

export default function Page() {
  const { status } = useConnection(null, options);
  useEffect(() => {
    smoke()
      .catch(String)
      .then((outcome) => (globalThis.outcome = outcome));
  }, []);
  return <p>The connection is {status}.</p>;
}
