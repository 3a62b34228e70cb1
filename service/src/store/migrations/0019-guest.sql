-- What carries out user data in an image's guests, also in images that are made of them: 'tiny', 'cloud-init'; NULL: not known.
ALTER TABLE image ADD COLUMN guest {{text}};
ALTER TABLE server ADD COLUMN guest {{text}};
UPDATE server SET guest = 'tiny' WHERE image_name = 'brume-tiny';
UPDATE image SET guest = 'tiny' WHERE name = 'brume-tiny' AND project_id IS NULL;
UPDATE image SET guest = 'tiny' WHERE server_id IN (SELECT id FROM server WHERE guest = 'tiny');
UPDATE server SET guest = 'tiny' WHERE image_id IN (SELECT id FROM image WHERE guest = 'tiny');
