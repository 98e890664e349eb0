import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** The files that the build is made of. web/web_test.go has the same list. */
const sources = ['index.html', 'package.json', 'package-lock.json', 'tsconfig.json', 'vite.config.ts', ...readdirSync('src').sort().map((f) => 'src/' + f)];

/** Notes beside the build the sources that it was made from, so that a test without Node sees whether it is outdated, and under which licences its parts are. */
function notes(): Plugin {
  return {
    name: 'berth-notes',
    generateBundle() {
      const hash = createHash('sha256');
      for (const f of sources) hash.update(f + '\n').update(readFileSync(f)).update('\n');
      this.emitFile({ type: 'asset', fileName: 'build.json', source: JSON.stringify({ sources: hash.digest('hex') }) + '\n' });
      const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, { version: string; license?: string; dev?: boolean; optional?: boolean; peer?: boolean }> };
      let text = 'The pages of Berth hold parts of these packages.\n';
      for (const [path, p] of Object.entries(lock.packages)) {
        if (path === '' || p.dev || p.optional) continue;
        text += `\n${'-'.repeat(78)}\n${path.replace(/^.*node_modules\//, '')} ${p.version}, ${p.license ?? 'licence not stated'}\n\n`;
        const file = existsSync(path) && readdirSync(path).find((f) => /^licen[cs]e/i.test(f));
        if (file) text += readFileSync(`${path}/${file}`, 'utf8').trim() + '\n';
      }
      this.emitFile({ type: 'asset', fileName: 'licences.txt', source: text });
    },
  };
}

// The names are stable, since the service serves them below a hash of all of them; index.html
// names them relatively, and web/web.go puts that hash in.
export default defineConfig({
  base: './',
  plugins: [react(), notes()],
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    // The page names all that its first file imports, so that nothing waits for another file to be read. Other pages bring what they need themselves.
    modulePreload: { polyfill: false, resolveDependencies: (_, deps, { hostType }) => (hostType === 'html' ? deps : []) },
    target: 'es2023',
    chunkSizeWarningLimit: 900,
    rolldownOptions: {
      output: { entryFileNames: 'index.js', chunkFileNames: '[name].js', assetFileNames: (a) => (a.names[0]?.endsWith('.css') ? 'index.css' : '[name][extname]') },
    },
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:7117', '/healthz': 'http://127.0.0.1:7117', '/openapi.json': 'http://127.0.0.1:7117' } },
});
